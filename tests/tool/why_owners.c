// The parts of `tarn why`, on traces that are built event by event: owners of
// stacks, and the names of what they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame_names.h"
#include "owners.h"
#include "why_kit.h"

// The name of the frame that owns |count| |frames|.
static char *owner_among(const tarn_trace_frame *frames, size_t count,
                         const options_list *patterns) {
  begin();
  alloc(4096, 1, stack_of(frames, count));
  tarn_trace *trace = finish();
  owners *o = owners_create(trace, patterns);
  uint32_t frame = owners_of(o, trace->blocks[0].stack);
  ck_assert_uint_ne(frame, TARN_TRACE_NO_STACK);
  char *name = frame_names_frame(&trace->frames[frame]);
  owners_destroy(o);
  tarn_trace_destroy(trace);
  return name;
}

static void assert_owner(const tarn_trace_frame *frames, size_t count,
                         const options_list *patterns, const char *expected) {
  char *name = owner_among(frames, count, patterns);
  ck_assert_str_eq(name, expected);
  free(name);
}

// ---------------------------------------------------------------------------
// Owners
// ---------------------------------------------------------------------------

static const tarn_trace_frame python_stack[] = {
    {"??", "torch::unwind::unwind()", 0},
    {"CUDACachingAllocator.cpp", "c10::cuda::CUDACachingAllocator::malloc", 0},
    {"", "at::_ops::bmm::call(at::Tensor const&)", 0},
    {"<frozen importlib._bootstrap>", "_call", 241},
    {"/home/me/.venv/lib/python3.12/site-packages/torch/nn/f.py", "linear", 9},
    {"/usr/lib/python3/dist-packages/numpy/core.py", "dot", 3},
    {"/usr/lib/python3.11/functools.py", "wrapper", 5},
    {"/home/me/run/model.py", "forward", 39},
    {"/home/me/run/train.py", "<module>", 7},
};

TEST(own_python_owns) {
  assert_owner(python_stack, COUNT(python_stack), &no_patterns,
               "/home/me/run/model.py:39 forward");
}

// Typed code is the user's own; a folder named python beside a lib is no
// library.
TEST(unusual_places_are_own) {
  static const tarn_trace_frame typed[] = {{"<stdin>", "<module>", 1}};
  static const tarn_trace_frame folder[] = {
      {"/home/me/lib/mine/python3.py", "f", 2}};
  static const tarn_trace_frame file[] = {{"/a/lib/python3.py", "f", 3}};
  assert_owner(typed, 1, &no_patterns, "<stdin>:1 <module>");
  assert_owner(folder, 1, &no_patterns, "/home/me/lib/mine/python3.py:2 f");
  assert_owner(file, 1, &no_patterns, "/a/lib/python3.py:3 f");
}

static options_list patterns_of(const char *a, const char *b) {
  options_list list = {0};
  options_list_add(&list, a, strlen(a));
  if (b != NULL) options_list_add(&list, b, strlen(b));
  return list;
}

static void assert_owner_with(const char *a, const char *b,
                              const char *expected) {
  options_list patterns = patterns_of(a, b);
  assert_owner(python_stack, COUNT(python_stack), &patterns, expected);
  options_list_free(&patterns);
}

TEST(patterns_decide) {
  assert_owner_with("*/model.py", NULL, "/home/me/run/train.py:7 <module>");
  assert_owner_with("forward", NULL, "/home/me/run/train.py:7 <module>");
  assert_owner_with("!*/numpy/*", NULL,
                    "/usr/lib/python3/dist-packages/numpy/core.py:3 dot");
  assert_owner_with("none", NULL, "torch::unwind::unwind()");
  assert_owner_with("none", "*::*", "<frozen importlib._bootstrap>:241 _call");
}

TEST(the_last_pattern_decides) {
  assert_owner_with("*/run/*", "!*/train.py",
                    "/home/me/run/train.py:7 <module>");
  assert_owner_with("!*/model.py", "*/run/*",
                    "at::_ops::bmm::call(at::Tensor "
                    "const&)");
}

// The interpreter's sources, wherever they were built, are known by a function
// of its own in a file of theirs.
TEST(the_interpreter_owns_nothing) {
  static const tarn_trace_frame debian[] = {
      {"/lib/x86_64-linux-gnu/libc.so.6", "malloc", 0},
      {"./Modules/_io/bytesio.c", "resize_buffer", 143},
      {"./Objects/../Python/dynload_shlib.c", "_PyImport_FindSharedFuncptr",
       96},
      {"../Python/ceval.c", "_PyEval_EvalFrameDefault", 5381},
      {"./Python/pythonrun.c", "run_mod", 1713},
      {"./Programs/python.c", "main", 15},
      {"/home/me/app/start.c", "start", 3}};
  static const tarn_trace_frame conda[] = {
      {"/usr/local/src/conda/python-3.11.5/Objects/listobject.c", "list_resize",
       70},
      {"/usr/local/src/conda/python-3.11.5/Python/ceval.c",
       "_PyEval_EvalFrameDefault", 5381},
      {"/home/me/Objects/mine.c", "keep", 7}};
  static const tarn_trace_frame extension[] = {
      {"Modules/fast.c", "grow", 12},
      {"Modules/fast.c", "PyInit_fast", 30},
      {"/usr/bin/python3.11", "_PyEval_EvalFrameDefault", 0}};
  static const tarn_trace_frame alone[] = {
      {"/tmp/b/Python-3.11.7/Modules/arraymodule.c", "array_resize", 176},
      {"/usr/src/python/Modules/arraymodule.c", "ins1", 648},
      {"/home/me/python-tools/Modules/a.c", "mine", 1}};
  // The folder of sources is the last one of such a name.
  static const tarn_trace_frame below[] = {
      {"/home/me/Python/cpython/Objects/call.c", "PyObject_Call", 20},
      {"/home/me/Python/cpython/Objects/../Python/dynload.c", "load", 5},
      {"/home/me/Python/mine/alloc.c", "grow", 9}};
  static const tarn_trace_frame none[] = {{"Objects/mine.c", "keep", 7},
                                          {"src/main.c", "main", 9}};
  assert_owner(debian, COUNT(debian), &no_patterns,
               "/home/me/app/start.c:3 start");
  assert_owner(conda, COUNT(conda), &no_patterns,
               "/home/me/Objects/mine.c:7 keep");
  assert_owner(extension, COUNT(extension), &no_patterns,
               "Modules/fast.c:12 grow");
  static const tarn_trace_frame no_own[] = {
      {"Objects/obmalloc.c", "_PyObject_Malloc", 2003},
      {"Objects/bytearrayobject.c", "PyByteArray_Resize", 233},
      {"Python/ceval.c", "_PyEval_EvalFrameDefault", 5381}};
  assert_owner(no_own, COUNT(no_own), &no_patterns,
               "Objects/bytearrayobject.c:233 PyByteArray_Resize");
  assert_owner(alone, COUNT(alone), &no_patterns,
               "/home/me/python-tools/Modules/a.c:1 mine");
  assert_owner(below, COUNT(below), &no_patterns,
               "/home/me/Python/mine/alloc.c:9 grow");
  assert_owner(none, COUNT(none), &no_patterns, "Objects/mine.c:7 keep");
}

TEST(own_native_code_owns) {
  static const tarn_trace_frame frames[] = {
      {"/lib/x86_64-linux-gnu/libc.so.6", "malloc", 0},
      {"/opt/tarn/lib/libtarn.so.0", "tarn_pool_alloc", 0},
      {"src/pool.c", "tarn_pool_alloc", 12},
      {"/usr/include/c++/12/bits/new_allocator.h", "allocate", 137},
      {"/usr/lib/libopenblas.so.0", "blas_memory_alloc", 0},
      {"./malloc/malloc.c", "__libc_malloc", 3321},
      {"/home/me/net.cc", "layer(int)", 20},
      {"/home/me/main.cc", "main", 5},
  };
  assert_owner(frames, COUNT(frames), &no_patterns,
               "/home/me/net.cc:20 layer(int)");
}

// The innermost node says what a backward pass needed it for.
TEST(libraries_alone_tell_the_node) {
  static const tarn_trace_frame frames[] = {
      {"??", "torch::unwind::unwind()", 0},
      {"", "at::detail::empty_generic(long)", 0},
      {"", "at::native::clone(at::Tensor const&)", 0},
      {"??", "torch::autograd::AccumulateGrad::apply(std::vector<int>&&)", 0},
      {"??", "torch::autograd::generated::MulBackward0::apply(int)", 0},
      {"??", "__clone", 0},
      {"/venv/lib/python3.12/site-packages/torch/x.py", "run", 4},
  };
  static const tarn_trace_frame others[] = {
      {"??", "torch::unwind::unwind()", 0},
      {"", "at::native::clone(at::Tensor const&)", 0},
      {"/venv/lib/python3.12/site-packages/torch/x.py", "run", 4},
  };
  static const tarn_trace_frame plumbing[] = {
      {"??", "torch::unwind::unwind()", 0},
      {"libc.so.6", "malloc", 0},
      {"libtarn.so.0", "tarn_x", 0},
      {"", "operator new(unsigned long)", 0},
      {"libpython3.11.so", "malloc", 0},
      {"/usr/lib/python3.11/x.py", "malloc", 0},
  };
  assert_owner(frames, COUNT(frames), &no_patterns,
               "torch::autograd::AccumulateGrad::apply(std::vector<int>&&)");
  assert_owner(others, COUNT(others), &no_patterns,
               "at::native::clone(at::Tensor const&)");
  assert_owner(plumbing, COUNT(plumbing), &no_patterns,
               "torch::unwind::unwind()");
}

TEST(no_stack_has_no_owner) {
  begin();
  alloc(1, 1, TARN_TRACE_NO_STACK);
  tarn_trace *trace = finish();
  owners *o = owners_create(trace, &no_patterns);
  ck_assert_uint_eq(owners_of(o, TARN_TRACE_NO_STACK), TARN_TRACE_NO_STACK);
  owners_destroy(o);
  owners_destroy(NULL);
  tarn_trace_destroy(trace);
}

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

static void assert_module(const char *file, const char *function, size_t depth,
                          const char *expected) {
  tarn_trace_frame frame = {file, function, 1};
  char *name = frame_names_module(&frame, "/home/me/", depth);
  ck_assert_str_eq(name, expected);
  free(name);
}

TEST(modules_have_names) {
  assert_module("/home/me/net/model.py", "f", 0, "net.model");
  assert_module("/home/me/net/layers/__init__.py", "f", 0, "net.layers");
  assert_module("/home/me/net/layers/a.py", "f", 1, "net");
  assert_module("/home/me/net/layers/a.py", "f", 2, "net.layers");
  assert_module("/home/me/scripts/../net/a.py", "f", 0, "net.a");
  assert_module("/v/site-packages/torch/nn/x.py", "f", 0, "torch.nn.x");
  assert_module("/usr/lib/python3.11/json/x.py", "f", 0, "json.x");
  assert_module("??", "a::b<c::d>::e(f::g)", 0, "a::b<c::d>");
  assert_module("??", "a::b::c::d()", 2, "a::b");
  assert_module("/usr/lib/libx.so.1", "run", 0, "libx.so.1");
  assert_module("x.cc", "(anonymous namespace)::f()", 0,
                "(anonymous namespace)");
  assert_module("", "", 0, "(unknown)");
  assert_module("/../x.py", "f", 0, "/...x");
}

static void assert_short(const char *file, uint32_t line, const char *function,
                         const char *expected) {
  tarn_trace_frame frame = {file, function, line};
  tarn_trace trace = {.frames = &frame, .frame_count = 1};
  holder row = {.kind = HOLDER_OWN};
  char *name = frame_names_short(&trace, &row, "/home/me/");
  ck_assert_str_eq(name, expected);
  free(name);
}

TEST(frames_have_short_names) {
  assert_short("/home/me/a.py", 3, "f", "a.py:3 f");
  assert_short("/home/me/x/../a.py", 3, "f", "a.py:3 f");
  assert_short("/home/you/a.py", 3, "f", "/home/you/a.py:3 f");
  assert_short("", 0, "a::b(c::d)", "a::b");
  assert_short("", 0, "a::(anonymous namespace)::b(int)",
               "a::(anonymous namespace)::b");
  assert_short("a.c", 0, "f(x)", "a.c f(x)");
  assert_short("a.c", 4, "", "a.c:4");
  assert_short("??", 4, "", "(unknown)");
  assert_short("/home/me/../../a.py", 1, "f", "../../a.py:1 f");
  assert_short("/x/a/b/../../c.py", 1, "f", "/x/c.py:1 f");
}

TEST(the_root_is_common) {
  begin();
  alloc(1, 1, stack_at("/home/me/run/net/a.py", 1, "f"));
  alloc(2, 1, stack_at("/home/me/run/network.py", 1, "f"));
  alloc(3, 1, stack_at("<stdin>", 1, "f"));
  alloc(4, 1, stack_at("/v/site-packages/x.py", 1, "f"));
  tarn_trace *trace = finish();
  owners *o = owners_create(trace, &no_patterns);
  char *root = frame_names_root(trace, o);
  ck_assert_str_eq(root, "/home/me/run/");
  free(root);
  owners_destroy(o);
  tarn_trace_destroy(trace);
}

// A name of a megabyte is no code of a user, and is not written out.
TEST(names_are_cut) {
  enum { LONG = 1 << 20 };
  char *file = calloc(LONG + 1, 1);
  ck_assert_ptr_nonnull(file);
  memset(file, 'x', LONG);
  memcpy(file + LONG - 3, ".py", sizeof ".py");
  tarn_trace_frame frames[] = {{file, "f", 1}, {"/home/me/a.py", "g", 2}};
  assert_owner(frames, 2, &no_patterns, "/home/me/a.py:2 g");
  char *name = frame_names_frame(&frames[0]);
  ck_assert_uint_eq(strlen(name), 1024 + strlen(":1 f"));
  free(name);
  free(file);
}
