// Frames and modules as texts.
#include "frame_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/format.h"
#include "kit/tool.h"

// A million frames may share a name of many megabytes.
enum { NAME_MOST = 1024 };

// The names of a frame, cut to the shown length.
typedef struct readable {
  char file[NAME_MOST + 1];  // "": unknown
  char function[NAME_MOST + 1];
  uint32_t line;
} readable;

static void copy_name(char *out, const char *name) {
  size_t length = strnlen(name, NAME_MOST);
  memcpy(out, name, length);
  out[length] = '\0';
}

static bool is_unknown(const char *file) {
  return *file == '\0' || strcmp(file, "??") == 0;
}

static void read_frame(readable *out, const tarn_trace_frame *frame) {
  copy_name(out->file, is_unknown(frame->file) ? "" : frame->file);
  copy_name(out->function, frame->function);
  out->line = frame->line;
}

// ---------------------------------------------------------------------------
// Frames
// ---------------------------------------------------------------------------

// Joins the known parts of a frame.
static char *join(const readable *frame) {
  char number[16] = "";
  bool file = *frame->file, function = *frame->function;
  size_t room = sizeof *frame + sizeof number;
  if (!file && !function) return tool_text("(unknown)");
  if (file && frame->line > 0) {
    snprintf(number, sizeof number, ":%u", frame->line);
  }
  char text[sizeof(readable) + sizeof number];
  snprintf(text, room, "%s%s%s%s", frame->file, number,
           file && function ? " " : "", frame->function);
  return tool_text(text);
}

char *frame_names_frame(const tarn_trace_frame *frame) {
  readable names;
  read_frame(&names, frame);
  return join(&names);
}

// Without arguments, but "(anonymous namespace)" stays.
static size_t length_without_arguments(const char *function) {
  static const char anonymous[] = "(anonymous namespace)";
  const char *at = function;
  while (*at && *at != '(') {
    at++;
    if (strncmp(at, anonymous, sizeof anonymous - 1) == 0) {
      at += sizeof anonymous - 1;
    }
  }
  if (strncmp(function, anonymous, sizeof anonymous - 1) == 0) {
    return strlen(function);
  }
  bool scoped = strstr(function, "::") != NULL;
  return scoped && at > function ? (size_t)(at - function) : strlen(function);
}

static const char *below(const char *file, const char *root) {
  size_t length = strlen(root);
  return strncmp(file, root, length) == 0 && file[length] ? file + length
                                                          : file;
}

// Whether a component that a ".." takes back ends |path|[0 .. used).
static bool has_parent(const char *path, size_t used, size_t *out_begin) {
  if (used < 2 || path[used - 1] != '/') return false;
  size_t begin = used - 1;
  while (begin > 0 && path[begin - 1] != '/')
    begin--;
  size_t length = used - 1 - begin;
  *out_begin = begin;
  return length > 0 && strncmp(path + begin, "../", 3) != 0;
}

// Takes "a/../" out of a path.
static void fold_parents(char *path) {
  size_t used = 0, parent = 0;
  for (const char *in = path; *in;) {
    size_t length = strcspn(in, "/");
    if (in[length] == '/') length++;
    if (strncmp(in, "../", 3) == 0 && has_parent(path, used, &parent)) {
      used = parent;
    } else {
      memmove(path + used, in, length);
      used += length;
    }
    in += length;
  }
  path[used] = '\0';
}

static char *others(size_t rows) {
  char count[FORMAT_SIZE], text[2 * FORMAT_SIZE];
  snprintf(text, sizeof text, "(%s other%s)", format_count(count, rows),
           rows == 1 ? "" : "s");
  return tool_text(text);
}

static char *tag_name(const char *tag) {
  char text[NAME_MOST + 1];
  copy_name(text, tag);
  return tool_text(text);
}

// The name of a row that is not a frame; NULL for frames.
static char *name_of_kind(const tarn_trace *trace, const holder *h) {
  switch (h->kind) {
    case HOLDER_TAG:
      return tag_name(trace->tags[h->tag]);
    case HOLDER_BASELINE:
      return tool_text("(before the trace began)");
    case HOLDER_NO_STACK:
      return tool_text("(no stack)");
    case HOLDER_KEPT:
      return tool_text("(never freed in the trace)");
    case HOLDER_OTHERS:
      return others(h->rows);
    case HOLDER_OWN:
    case HOLDER_LIBRARY:
      break;
  }
  return NULL;
}

// |word| in front of |name|, which is freed.
static char *with_word(const char *word, char *name) {
  size_t size = strlen(word) + strlen(name) + 1;
  char *text = tool_array(size, 1);
  snprintf(text, size, "%s%s", word, name);
  free(name);
  return text;
}

char *frame_names_holder(const tarn_trace *trace, const holder *h) {
  char *name = name_of_kind(trace, h);
  return name ? name : frame_names_frame(&trace->frames[h->frame]);
}

char *frame_names_short(const tarn_trace *trace, const holder *h,
                        const char *root) {
  char *name = name_of_kind(trace, h);
  if (name != NULL && h->kind == HOLDER_TAG) return with_word("tag ", name);
  if (name != NULL) return name;
  readable names;
  read_frame(&names, &trace->frames[h->frame]);
  const char *shorter = below(names.file, root);
  memmove(names.file, shorter, strlen(shorter) + 1);
  fold_parents(names.file);
  names.function[length_without_arguments(names.function)] = '\0';
  return join(&names);
}

// ---------------------------------------------------------------------------
// Folders
// ---------------------------------------------------------------------------

static size_t folder_length(const char *file) {
  return (size_t)(tool_base_name(file) - file);
}

// How much of |root|, up to a '/', |file| shares.
static size_t common_folder(const char *root, size_t length, const char *file) {
  size_t same = 0, folder = 0;
  while (same < length && root[same] == file[same]) {
    same++;
    if (root[same - 1] == '/') folder = same;
  }
  return folder;
}

// Typed code, "<stdin>", has no folder and takes none from others. Frames of
// one file stand next to each other more often than not: it is read once.
char *frame_names_root(const tarn_trace *trace, owners *o) {
  const char *root = NULL, *last = NULL;
  size_t length = 0;
  for (size_t i = 0; i < trace->frame_count; i++) {
    const char *file = trace->frames[i].file;
    if (file == last || file[0] != '/') continue;
    last = file;
    if (!owners_is_own(o, (uint32_t)i)) continue;
    if (root == NULL) {
      root = file;
      length = folder_length(file);
    }
    length = common_folder(root, length, file);
  }
  char *text = tool_array(length + 1, 1);
  if (root != NULL) memcpy(text, root, length);
  return text;
}

// ---------------------------------------------------------------------------
// Modules
// ---------------------------------------------------------------------------

// Behind the folder in which packages are installed, or NULL.
static const char *package_of(const char *file) {
  static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const char *at = strstr(file, folders[i]);
    if (at != NULL) return at + strlen(folders[i]);
  }
  const char *at = strstr(file, "/lib/python3.");
  if (at == NULL) return NULL;
  at = strchr(at + strlen("/lib/python3."), '/');
  return at ? at + 1 : NULL;
}

// The end of the |depth|-th part of |name|, where |gap| parts them.
static void keep_parts(char *name, const char *gap, size_t depth) {
  char *at = name;
  for (size_t i = 0; depth > 0; i++) {
    at = strstr(at, gap);
    if (at == NULL) return;
    if (i + 1 == depth) {
      *at = '\0';
      return;
    }
    at += strlen(gap);
  }
}

static bool cut_end(char *text, const char *tail) {
  size_t length = strlen(text), size = strlen(tail);
  if (length <= size || strcmp(text + length - size, tail) != 0) return false;
  text[length - size] = '\0';
  return true;
}

static char *module_of_python(const char *file, const char *root) {
  const char *package = package_of(file);
  char *name = tool_text(package ? package : below(file, root));
  fold_parents(name);
  (void)cut_end(name, ".py");
  (void)cut_end(name, "/__init__");
  for (char *at = name + 1; *name && *at; at++) {
    if (*at == '/') *at = '.';
  }
  return name;
}

// The scope of a function of C++: the text before its last "::" outside of
// brackets; NULL if it has none.
static char *module_of_scope(const char *function) {
  size_t length = length_without_arguments(function), end = 0;
  size_t depth = 0;
  for (size_t i = 0; i + 1 < length; i++) {
    if (function[i] == '<') depth++;
    if (function[i] == '>' && depth > 0) depth--;
    if (depth == 0 && function[i] == ':' && function[i + 1] == ':') end = i;
  }
  if (end == 0) return NULL;
  char *name = tool_array(end + 1, 1);
  memcpy(name, function, end);
  return name;
}

static bool is_python_file(const char *file) {
  size_t length = strlen(file);
  return length > 3 && strcmp(file + length - 3, ".py") == 0;
}

char *frame_names_module(const tarn_trace_frame *frame, const char *root,
                         size_t depth) {
  const char *gap = ".";
  char *name = NULL;
  readable names;
  read_frame(&names, frame);
  if (is_python_file(names.file)) {
    name = module_of_python(names.file, root);
  } else {
    name = module_of_scope(names.function);
    gap = "::";
  }
  if (name == NULL && *names.file) {
    name = tool_text(names.file + folder_length(names.file));
    gap = "/";
  }
  if (name == NULL) name = tool_text("(unknown)");
  keep_parts(name, gap, depth);
  return name;
}
