// tarn new-plugin: a device plug-in to start from, in one C file.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "embedded.h"
#include "kit/options.h"
#include "kit/text.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn new-plugin NAME [OPTION]...\n"
    "\n"
    "Writes a device plug-in in one C file: a piece of the host's memory as\n"
    "the device \"NAME:0\", which passes `tarn conform`, with a comment at "
    "each\n"
    "place where a driver is to be asked instead.\n"
    "\n"
    "  NAME           the type of the devices: letters, digits, '_', '-', '.'\n"
    "  --out FILE     where to write it (default: NAME_plugin.c); a file that\n"
    "                 is there is not overwritten\n"
    "  -h, --help     this text\n"
    "\n"
    "Exit status: 1 if the file could not be written or is there already, 2 "
    "if\n"
    "the command line is wrong.\n";

enum { NAME_MAX_SIZE = 63 };

static const char placeholder[] = "@TYPE@";

typedef struct command {
  const tool_verb *verb;
  options_list words;
  const char *out;
} command;

// Whether the library accepts |name| as a device type.
static bool is_type(const char *name) {
  static const char letters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  size_t length = strlen(name);
  if (length == 0 || length > NAME_MAX_SIZE) return false;
  if (strchr(letters, name[0]) == NULL) return false;
  return strspn(name,
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                "0123456789_-.") == length;
}

// The template with |name| in place of each placeholder.
static void write_source(const char *name, FILE *out) {
  const char *rest = embedded_plugin_skeleton_c_in;
  const char *at = NULL;
  while ((at = strstr(rest, placeholder)) != NULL) {
    fwrite(rest, 1, (size_t)(at - rest), out);
    fputs(name, out);
    rest = at + sizeof placeholder - 1;
  }
  fputs(rest, out);
}

static tool_exit write_file(const command *c, const char *name,
                            const char *path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (out == NULL) {
    int error = errno;
    if (fd >= 0) close(fd);
    if (error == EEXIST) {
      return tool_fail(c->verb,
                       "%s is there already and stays as it is; "
                       "--out FILE writes elsewhere",
                       path);
    }
    return tool_fail(c->verb, "%s: %s", path, strerror(error));
  }
  write_source(name, out);
  bool failed = ferror(out) != 0;
  if (fclose(out) != 0) failed = true;
  if (!failed) return TOOL_DONE;
  int error = errno;
  (void)unlink(path);  // half a file would compile to nothing good
  return tool_fail(c->verb, "%s: %s", path, strerror(error));
}

// As one word of a shell, in quotes where it has to be; never an option.
static void write_word(const char *word) {
  size_t plain = strspn(word,
                        "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./");
  if (word[0] == '-') fputs("./", tool_out());
  if (word[plain] == '\0') {
    fputs(word, tool_out());
    return;
  }
  char *quoted = tool_array(4 * strlen(word) + 3, 1);
  char *end = quoted;
  *end++ = '\'';
  for (; *word != '\0'; word++) {
    if (*word == '\'') {
      end = stpcpy(end, "'\\''");
    } else {
      *end++ = *word;
    }
  }
  *end = '\'';
  text_write(quoted, tool_out());
  free(quoted);
}

static void say_next(const char *name, const char *path) {
  fputs("cc -shared -fPIC $(pkg-config --cflags tarn) ", tool_out());
  write_word(path);
  fprintf(tool_out(), " -o lib%s.so\ntarn conform ./lib%s.so\n", name, name);
}

static tool_exit work(void *context) {
  command *c = context;
  char path[NAME_MAX_SIZE + sizeof "_plugin.c"];
  if (c->words.count != 1) {
    return tool_misuse(c->verb, c->words.count == 0
                                    ? "what are its devices to be called?"
                                    : "one name at a time");
  }
  const char *name = c->words.items[0];
  if (!is_type(name)) {
    return tool_misuse(c->verb,
                       "'%s' is no device type: a letter, then up to 62 "
                       "letters, digits, '_', '-' or '.'",
                       name);
  }
  snprintf(path, sizeof path, "%s_plugin.c", name);
  if (c->out == NULL) c->out = path;
  tool_exit status = write_file(c, name, c->out);
  if (status == TOOL_DONE) say_next(name, c->out);
  return status;
}

static const options_entry entries[] = {
    OPTION_TEXT("out", out),
    {0},
};

const tool_verb verb_new_plugin = {
    .name = "new-plugin",
    .summary = "writes a device plug-in to start from",
    .help = help,
    .entries = entries,
    .size = sizeof(command),
    .words = offsetof(command, words),
    .work = work,
};
