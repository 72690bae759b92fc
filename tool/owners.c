// Frames, own and of libraries, judged by their names.
//
// Rules are compared by hand and not by fnmatch, since a trace may have a
// million frames: one pass over a path finds all the folders that matter.
#include "owners.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "interpreter.h"

enum { UNJUDGED = 0, OWN, LIBRARY };

#define UNSEARCHED (UINT32_MAX - 1)

struct owners {
  const tarn_trace *trace;
  const options_list *patterns;
  bool has_rules;           // those that are there unless "none" is said
  bool has_python;          // frames of Python, or of PyTorch
  interpreter interpreter;  // its sources, as native frames name them
  unsigned char *verdicts;  // of each frame
  uint32_t *of_stack;       // UNSEARCHED, NO_STACK, or the frame
};

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

static bool starts(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with) {
  size_t length = strlen(text), tail = strlen(with);
  return length >= tail && memcmp(text + length - tail, with, tail) == 0;
}

static bool starts_with_any(const char *text, const char *const *heads) {
  for (; *heads != NULL; heads++) {
    if (starts(text, *heads)) return true;
  }
  return false;
}

// No path is that long, and a million frames may share such a name: it is not
// read to its end.
static bool is_absurd(const char *name) {
  enum { LONGEST = 4096 };
  return strnlen(name, LONGEST) == LONGEST;
}

static bool is_unknown(const char *file) {
  return *file == '\0' || strcmp(file, "??") == 0;
}

// "<stdin>" and cells of notebooks are code that a user typed.
static bool is_python(const char *file) {
  static const char *const typed[] = {"<stdin>", "<string>", "<ipython-input",
                                      NULL};
  return !is_absurd(file) &&
         (ends(file, ".py") || starts_with_any(file, typed));
}

// Whether |path| goes through folders in which packages are installed, or the
// standard library of Python.
static bool is_installed(const char *path) {
  bool in_lib = false;
  while (*path) {
    size_t length = strcspn(path, "/");
    if (path[length] == '\0') return false;  // the file itself
    if (length == 13 && (memcmp(path, "site-packages", 13) == 0 ||
                         memcmp(path, "dist-packages", 13) == 0)) {
      return true;
    }
    if (in_lib && starts(path, "python")) return true;
    in_lib = (length == 3 && memcmp(path, "lib", 3) == 0) ||
             (length == 5 && memcmp(path, "lib64", 5) == 0);
    path += length + 1;
  }
  return false;
}

static bool is_of_system(const char *file) {
  static const char *const folders[] = {
      "/lib/",         "/lib32/",         "/lib64/",     "/libx32/",
      "/usr/lib/",     "/usr/lib32/",     "/usr/lib64/", "/usr/libexec/",
      "/usr/include/", "/usr/local/cuda", "../sysdeps/", "./sysdeps/",
      "../csu/",       "./csu/",          "./malloc/",   "./nptl/",
      "../nptl/",      "./elf/",          "[vdso]",      NULL};
  static const char *const files[] = {"libc.so",   "libc-2",    "ld-linux",
                                      "libm.so",   "libdl.so",  "libpthread",
                                      "libstdc++", "libgcc_s.", "libtarn",
                                      "libpython", "python3.",  NULL};
  return starts_with_any(file, folders) ||
         starts_with_any(tool_base_name(file), files);
}

// ---------------------------------------------------------------------------
// Frames
// ---------------------------------------------------------------------------

static bool is_library_of_python(const tarn_trace_frame *frame) {
  return !is_python(frame->file) || is_installed(frame->file);
}

static bool is_library_of_native(const owners *o,
                                 const tarn_trace_frame *frame) {
  return starts(frame->function, "tarn_") || is_of_system(frame->file) ||
         is_installed(frame->file) ||
         interpreter_has(&o->interpreter, frame->file);
}

static bool fits(const char *pattern, const char *name) {
  return !is_absurd(name) && fnmatch(pattern, name, 0) == 0;
}

static bool matches(const char *pattern, const tarn_trace_frame *frame) {
  return fits(pattern, frame->file) || fits(pattern, frame->function);
}

// The last pattern that matches; UNJUDGED if none does.
static unsigned char ask_patterns(const owners *o,
                                  const tarn_trace_frame *frame) {
  for (size_t i = o->patterns->count; i > 0; i--) {
    const char *pattern = o->patterns->items[i - 1];
    bool own = pattern[0] == '!';
    if (matches(pattern + own, frame)) return own ? OWN : LIBRARY;
  }
  return UNJUDGED;
}

static unsigned char judge(const owners *o, const tarn_trace_frame *frame) {
  unsigned char verdict = ask_patterns(o, frame);
  if (verdict != UNJUDGED) return verdict;
  if (is_absurd(frame->file)) return LIBRARY;
  if (!o->has_rules) return OWN;
  bool library = o->has_python ? is_library_of_python(frame)
                               : is_library_of_native(o, frame);
  return library ? LIBRARY : OWN;
}

bool owners_is_own(owners *o, uint32_t frame) {
  unsigned char *verdict = &o->verdicts[frame];
  if (*verdict == UNJUDGED) *verdict = judge(o, &o->trace->frames[frame]);
  return *verdict == OWN;
}

// ---------------------------------------------------------------------------
// Stacks
// ---------------------------------------------------------------------------

// A node of the automatic differentiation: what a backward pass is made of.
static bool is_node(const tarn_trace_frame *frame) {
  if (is_absurd(frame->function)) return false;
  const char *apply = strstr(frame->function, "::apply(");
  if (apply == NULL) return false;
  const char *backward = strstr(frame->function, "Backward");
  const char *gradient = strstr(frame->function, "AccumulateGrad");
  return (backward != NULL && backward < apply) ||
         (gradient != NULL && gradient < apply);
}

// The allocator, and the layers between it and the code that needed memory.
static bool is_plumbing(const tarn_trace_frame *frame) {
  static const char *const functions[] = {
      "torch::unwind",
      "torch::CapturedTraceback",
      "torch::cuda::(anonymous namespace)::gather",
      "c10::cuda::CUDACachingAllocator",
      "at::detail::empty",
      "at::native::empty",
      "at::_ops::empty",
      "at::(anonymous namespace)::(anonymous namespace)::wrapper_CUDA_",
      "at::(anonymous namespace)::create_out",
      "c10::impl::wrap_kernel_functor",
      "tarn_",
      "malloc",
      "calloc",
      "realloc",
      "aligned_alloc",
      "posix_memalign",
      "memalign",
      "mmap",
      "operator new",
      "_Zn",
      NULL};
  static const char *const files[] = {"libc.so",   "libc-2",  "ld-linux",
                                      "libstdc++", "libtarn", "obmalloc.c",
                                      NULL};
  return starts_with_any(frame->function, functions) ||
         is_absurd(frame->file) ||
         starts_with_any(tool_base_name(frame->file), files) ||
         (is_unknown(frame->file) && *frame->function == '\0');
}

typedef bool frame_test(owners *o, uint32_t frame);

static bool frame_is_node(owners *o, uint32_t frame) {
  return is_node(&o->trace->frames[frame]);
}

static bool frame_is_telling(owners *o, uint32_t frame) {
  return !is_plumbing(&o->trace->frames[frame]);
}

// The innermost frame of |stack| that passes |test|, or NO_STACK.
static uint32_t innermost(owners *o, const tarn_trace_stack *stack,
                          frame_test *test) {
  const uint32_t *frames = o->trace->frame_indices + stack->first;
  for (uint32_t i = 0; i < stack->count; i++) {
    if (test(o, frames[i])) return frames[i];
  }
  return TARN_TRACE_NO_STACK;
}

static uint32_t search(owners *o, const tarn_trace_stack *stack) {
  static frame_test *const tests[] = {owners_is_own, frame_is_node,
                                      frame_is_telling};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    uint32_t found = innermost(o, stack, tests[i]);
    if (found != TARN_TRACE_NO_STACK) return found;
  }
  return stack->count > 0 ? o->trace->frame_indices[stack->first]
                          : TARN_TRACE_NO_STACK;
}

uint32_t owners_of(owners *o, uint32_t stack) {
  if (stack == TARN_TRACE_NO_STACK) return TARN_TRACE_NO_STACK;
  uint32_t *known = &o->of_stack[stack];
  if (*known == UNSEARCHED) *known = search(o, &o->trace->stacks[stack]);
  return *known;
}

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

static bool any_python(const tarn_trace *trace) {
  for (size_t i = 0; i < trace->frame_count; i++) {
    if (is_python(trace->frames[i].file)) return true;
  }
  return false;
}

static bool has_rules(const options_list *patterns) {
  for (size_t i = 0; i < patterns->count; i++) {
    if (strcmp(patterns->items[i], "none") == 0) return false;
  }
  return true;
}

owners *owners_create(const tarn_trace *trace, const options_list *patterns) {
  owners *o = tool_array(1, sizeof *o);
  o->trace = trace;
  o->patterns = patterns;
  o->has_rules = has_rules(patterns);
  o->has_python =
      strcmp(trace->format, "pytorch-snapshot") == 0 || any_python(trace);
  if (!o->has_python) o->interpreter = interpreter_find(trace);
  o->verdicts = tool_array(trace->frame_count + 1, sizeof *o->verdicts);
  o->of_stack = tool_array(trace->stack_count + 1, sizeof *o->of_stack);
  for (size_t i = 0; i < trace->stack_count; i++)
    o->of_stack[i] = UNSEARCHED;
  return o;
}

void owners_destroy(owners *o) {
  if (o == NULL) return;
  free(o->of_stack);
  free(o->verdicts);
  free(o);
}
