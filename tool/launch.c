// A child with the recorder in its environment.
#include "launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Where the library stands, seen from the tool: built, and installed.
static const char *const places[] = {"", "record/", TARN_RECORD_FROM_BIN,
                                     TARN_RECORD_FROM_BIN "../"};
enum { PLACES = sizeof places / sizeof *places };

const launch_object launch_recorder = {"libtarn-record.so",
                                       "TARN_RECORD_LIBRARY"};
const launch_object launch_malloc = {"libtarn-malloc.so",
                                     "TARN_MALLOC_LIBRARY"};

static const char preload[] = "LD_PRELOAD";

// --- the library -----------------------------------------------------------

// "<folder of the tool>/<place><name>", if a file can be read there.
static char *find_at(const char *tool, const char *place, const char *name) {
  size_t folder = (size_t)(strrchr(tool, '/') - tool) + 1;
  size_t room = folder + strlen(place) + strlen(name) + 1;
  char *path = tool_array(room, 1);
  snprintf(path, room, "%.*s%s%s", (int)folder, tool, place, name);
  char *real = realpath(path, NULL);
  free(path);
  if (real == NULL || access(real, R_OK) == 0) return real;
  free(real);
  return NULL;
}

static char *find_near(const char *tool, const char *name) {
  char *found = NULL;
  for (int i = 0; tool != NULL && found == NULL && i < PLACES; i++)
    found = find_at(tool, places[i], name);
  return found;
}

char *launch_find(const char *name) {
  char *tool = realpath("/proc/self/exe", NULL);
  char *found = find_near(tool, name);
  free(tool);
  return found;
}

static char *find_library(const tool_verb *verb, const launch_object *object) {
  char *tool = realpath("/proc/self/exe", NULL);
  char *found = find_near(tool, object->name);
  if (found == NULL) {
    tool_fail(verb, "%s is neither beside %s nor in %s; %s says where it is",
              object->name, tool != NULL ? tool : "the tool",
              TARN_RECORD_FROM_BIN, object->variable);
  }
  free(tool);
  return found;
}

static char *named_library(const tool_verb *verb, const launch_object *object,
                           const char *path) {
  char *real = realpath(path, NULL);
  if (real != NULL && access(real, R_OK) == 0) return real;
  tool_fail(verb, "%s: %s: %s", object->variable, path, strerror(errno));
  free(real);
  return NULL;
}

// The dynamic linker takes both for the end of a path.
static char *check_letters(const tool_verb *verb, char *path) {
  if (path == NULL || strpbrk(path, " :") == NULL) return path;
  tool_fail(verb,
            "%s: what is preloaded cannot stand at a path with a blank or "
            "a colon",
            path);
  free(path);
  return NULL;
}

char *launch_library(const tool_verb *verb, const launch_object *object) {
  const char *named = getenv(object->variable);
  bool is_named = named != NULL && *named != '\0';
  return check_letters(verb, is_named ? named_library(verb, object, named)
                                      : find_library(verb, object));
}

// --- the program -----------------------------------------------------------

typedef struct preparation {
  const char *library;
  const launch_setting *settings;
} preparation;

// "library:more", where |more| is the LD_PRELOAD of the tool.
static char *with_more(const char *library, const char *more) {
  bool has_more = more != NULL && *more != '\0';
  size_t room = strlen(library) + (has_more ? strlen(more) : 0) + sizeof ":";
  char *text = tool_array(room, 1);
  snprintf(text, room, "%s%s%s", library, has_more ? ":" : "",
           has_more ? more : "");
  return text;
}

// In a child, whose memory is gone with it.
static bool prepare(void *context) {
  const preparation *p = context;
  char number[32];
  snprintf(number, sizeof number, "%ld", (long)getpid());
  children_set(preload, with_more(p->library, getenv(preload)));
  for (const launch_setting *at = p->settings; at->name != NULL; at++)
    children_set(at->name, at->value != NULL ? at->value : number);
  return true;
}

int launch_run(char *const *program, const char *library,
               const launch_setting *settings, child *out_end) {
  child_set one;
  preparation p = {library, settings};
  int error = children_begin(&one, 1);
  if (error != 0) return -error;
  error = children_start(&one, program, prepare, &p);
  children_wait(&one);
  if (error == 0) *out_end = one.all[0];
  children_end(&one);
  return error;
}
