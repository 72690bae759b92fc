// tarn bench: the cost of memory on this machine, compared with alternatives.
//
//   bench blocks    what finding a block by an address inside takes
//   bench counters  what a pool's counters take of an alloc and a free
//   bench device    copies, streams and events of devices, against memcpy
//   bench model     what planning saves of the memory of nets
//   bench plan      how quickly plans are found, and how low they are
//   bench pool      workloads through allocators
//   bench preload   programs under allocators that are preloaded
//   bench record    what recording costs a program
//   bench synced    what synced buffers cost, and what they do not copy
//   bench table     tables in files
//   bench view      pages in a browser
//   bench whole     rows of one memory over several processes
//   bench why       a large snapshot, read and asked about
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "kit/options.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn bench blocks [OPTION]...\n"
    "       tarn bench counters [OPTION]...\n"
    "       tarn bench device [OPTION]...\n"
    "       tarn bench model [OPTION]... [NET]...\n"
    "       tarn bench plan [OPTION]... [DIR]\n"
    "       tarn bench pool [OPTION]...\n"
    "       tarn bench preload [OPTION]...\n"
    "       tarn bench record [OPTION]...\n"
    "       tarn bench synced [OPTION]...\n"
    "       tarn bench table [OPTION]... [PART]...\n"
    "       tarn bench view [OPTION]...\n"
    "       tarn bench whole [OPTION]...\n"
    "       tarn bench why [OPTION]...\n"
    "\n"
    "  blocks    what finding a block by an address inside takes\n"
    "  counters  what counting takes of an alloc and a free\n"
    "  device    what copies, streams and events of devices take, over memcpy\n"
    "  model     what planning saves of the memory of nets\n"
    "  plan      how quickly plans are found, and how low they are\n"
    "  pool      what an alloc and a free take, over a bare free list\n"
    "  preload   what real programs take under each allocator\n"
    "  record    what `tarn record` takes of the program that it records\n"
    "  synced    what synced buffers cost, and what they do not copy\n"
    "  table     tables in files, over preads, pwrites and fio\n"
    "  view      how fast a page of 'tarn view' appears and moves\n"
    "  whole     rows of one memory over several processes, over memcpy\n"
    "  why       what reading a large snapshot and asking about it takes\n"
    "\n"
    "'tarn bench device --help' and so on tell the options of each.\n";

static const tool_verb *const subjects[] = {
    &bench_of_blocks,   &bench_of_counters, &bench_of_devices,
    &bench_of_models,   &bench_of_plans,    &bench_of_pools,
    &bench_of_preloads, &bench_of_recorder, &bench_of_synced,
    &bench_of_tables,   &bench_of_views,    &bench_of_wholes,
    &bench_of_why,
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects, NAMES_SIZE = 256 };

// "device": the name without the verb's.
static const char *subject_name(size_t index) {
  if (index >= SUBJECTS) return NULL;
  return strchr(subjects[index]->name, ' ') + 1;
}

static tool_exit ask_of_what(const tool_verb *verb) {
  char known[NAMES_SIZE];
  tool_join(subject_name, known, sizeof known);
  return tool_misuse(verb, "of what? There are: %s", known);
}

static tool_exit run(const tool_verb *verb, int argc, char **argv) {
  if (argc < 2) return ask_of_what(verb);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    fputs(help, tool_out());
    return TOOL_DONE;
  }
  for (size_t i = 0; i < SUBJECTS; i++) {
    if (strcmp(subject_name(i), argv[1]) != 0) continue;
    return options_verb_run(subjects[i], argc - 1, argv + 1);
  }
  return options_unknown(verb, "benchmark", argv[1], subject_name);
}

const tool_verb verb_bench = {
    .name = "bench",
    .summary = "what memory costs here, against what else there is",
    .help = help,
    .run = run,
};
