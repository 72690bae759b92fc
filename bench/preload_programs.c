// The programs, and how they are called.
//
//   blocks    this tool: steps that take and write blocks (preload_work.c)
//   gpt-...   PyTorch trains a GPT of 4 layers, texts of one length or of many
//   resnet... PyTorch trains a ResNet-18, pictures of one size or of many
//   numpy     a made-up simulation on a grid
//   images    OpenImageIO's oiiotool, in C++: a chain of operations on pictures
//   resnet50, vgg16   the nets of the document about pools
#include <stdio.h>
#include <string.h>

#include "preload_bench.h"
#include "preload_scripts.h"

typedef enum kind { TOOL, TRAINING, ARRAYS, IMAGES } kind;

typedef struct program {
  const char *name;
  const char *net;
  const char *sizes;
  kind kind;
  unsigned steps;
} program;

static const program programs[] = {
    {"blocks", "", "", TOOL, 100},
    {"gpt-fixed", "gpt", "fixed", TRAINING, 12},
    {"gpt-varied", "gpt", "varied", TRAINING, 12},
    {"resnet-fixed", "resnet18", "fixed", TRAINING, 20},
    {"resnet-varied", "resnet18", "varied", TRAINING, 20},
    {"numpy", "", "", ARRAYS, 30},
    {"images", "", "", IMAGES, 25},
    {"resnet50", "resnet50", "fixed", TRAINING, 10},
    {"vgg16", "vgg16", "fixed", TRAINING, 10},
};
enum { PROGRAMS = sizeof programs / sizeof *programs, USUAL = PROGRAMS - 2 };

const char *preload_program_name(size_t index) {
  return index < PROGRAMS ? programs[index].name : NULL;
}

size_t preload_usual(void) {
  return USUAL;
}

const char *preload_allocator_name(size_t index) {
  static const char *const names[PRELOAD_ALLOCATORS] = {
      "glibc", "jemalloc", "tcmalloc", "mimalloc", "tarn"};
  return index < PRELOAD_ALLOCATORS ? names[index] : NULL;
}

// --- words -----------------------------------------------------------------

static void add(preload_words *w, const char *word) {
  if (w->count + 1 < PRELOAD_WORDS) w->words[w->count++] = word;
}

static void add_number(preload_words *w, uint64_t number) {
  char *at = w->texts + w->used;
  int length = snprintf(at, sizeof w->texts - w->used, "%llu",
                        (unsigned long long)number);
  w->used += (size_t)length + 1;
  add(w, at);
}

static void add_training(preload_words *w, const program *p,
                         const preload_scale *scale, uint64_t steps) {
  add(w, scale->python);
  add(w, "-c");
  add(w, embedded_preload_train_py);
  add(w, p->net);
  add(w, p->sizes);
  add_number(w, steps);
  add_number(w, scale->threads);
}

// Pictures are cut, added, turned to other sizes: each operation makes a new
// one of 7 to 18 MB.
static void add_images(preload_words *w, const preload_scale *scale,
                       uint64_t steps) {
  static const char *const operations[] = {
      "--dup",     "--mulc",         "0.3",
      "--addc",    "0.01",           "--add",
      "--crop",    "1100x700+50+30", "--resize:filter=box",
      "1500x1000", "--subc",         "0.02",
      "--abs"};
  add(w, "oiiotool");
  add(w, "--threads");
  add_number(w, scale->threads);
  add(w, "--pattern");
  add(w, "fill:topleft=0,0.1,0.2:bottomright=1,0.5,0.9");
  add(w, "1500x1000");
  add(w, "3");
  size_t count = sizeof operations / sizeof *operations;
  for (uint64_t i = 0; i < steps && w->count + count + 2 < PRELOAD_WORDS; i++) {
    for (size_t j = 0; j < count; j++)
      add(w, operations[j]);
  }
  add(w, "--printstats");
}

static void add_tool(preload_words *w, const preload_scale *scale,
                     const char *work, uint64_t steps) {
  add(w, scale->tool);
  add(w, "bench");
  add(w, "preload");
  add(w, "--work");
  add(w, work);
  add(w, "--steps");
  add_number(w, steps);
}

static void add_words(preload_words *w, const program *p,
                      const preload_scale *scale) {
  uint64_t steps = scale->steps != 0 ? scale->steps : p->steps;
  switch (p->kind) {
    case TOOL:
      add_tool(w, scale, "blocks", steps);
      break;
    case TRAINING:
      add_training(w, p, scale, steps);
      break;
    case ARRAYS:
      add(w, scale->python);
      add(w, "-c");
      add(w, embedded_preload_arrays_py);
      add_number(w, steps);
      break;
    case IMAGES:
      add_images(w, scale, steps);
      break;
  }
}

// --- whether it can be run -------------------------------------------------

static const char *add_probe(preload_words *w, const program *p,
                             const preload_scale *scale) {
  if (p->kind == TOOL) return "";
  if (p->kind == IMAGES) {
    add(w, "oiiotool");
    add(w, "--version");
    return "not installed: oiiotool (package openimageio-tools)";
  }
  bool trains = p->kind == TRAINING;
  bool needs_nets = trains && strcmp(p->net, "gpt") != 0;
  add(w, scale->python);
  add(w, "-c");
  add(w, needs_nets ? "import torchvision"
         : trains   ? "import torch"
                    : "import numpy");
  if (needs_nets) return "not installed: package python3-torchvision";
  return trains ? "not installed: package python3-torch"
                : "not installed: package python3-numpy";
}

void preload_program(const char *name, const preload_scale *scale,
                     preload_words *out, preload_words *out_probe,
                     const char **out_missing) {
  memset(out, 0, sizeof *out);
  memset(out_probe, 0, sizeof *out_probe);
  *out_missing = "";
  for (size_t i = 0; i < PROGRAMS; i++) {
    if (strcmp(programs[i].name, name) != 0) continue;
    add_words(out, &programs[i], scale);
    *out_missing = add_probe(out_probe, &programs[i], scale);
  }
}
