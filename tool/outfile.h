// outfile.h - the files that verbs write.
//
//   outfile_rules rules = {.verb = verb, .inputs = &traces, .force = force};
//   if (!outfile_try(&rules, OUTFILE_PAGE, path)) return TOOL_NO;
//   ... the work ...
//   outfile_write(verb, path, write, context);
//
// A file that the command reads is never overwritten. A file that holds
// something else than the verb writes is overwritten with --force only. An
// empty file holds nothing.
//
// A file is written beside its place and moved there when it is complete: until
// then the old one stays. A link stays a link. Anything but a regular file,
// such as /dev/stdout or a pipe, is written to directly.
#ifndef TARN_TOOL_OUTFILE_H_
#define TARN_TOOL_OUTFILE_H_

#include <stdio.h>

#include "kit/options.h"

typedef enum outfile_kind {
  OUTFILE_PAGE,     // of `tarn view` or `tarn replay`
  OUTFILE_PICTURE,  // of `tarn plan`
  OUTFILE_PLAN,     // a table of buffers that has all offsets
  OUTFILE_TRACE,    // nothing that is there is overwritten: a recording may be
                    // the only one
} outfile_kind;

typedef struct outfile_rules {
  const tool_verb *verb;
  const options_list *inputs;  // as the command line names them; NULL: none
  const char *input;           // one more; NULL: none
  bool force;
} outfile_rules;

// Whether |path| can and may be written to. False after a message.
bool outfile_try(const outfile_rules *rules, outfile_kind kind,
                 const char *path);

// Replaces |path| by what |write| writes. False after a message, and then the
// old file stays.
bool outfile_write(const tool_verb *verb, const char *path,
                   void (*write)(const void *context, FILE *out),
                   const void *context);

// Whether |path| is stdout, and so the output is to stand there alone.
// /dev/null does not count.
bool outfile_is_stdout(const char *path);

// Whether both are one file, by whatever names, or would be if they were made.
bool outfile_is_same(const char *path, const char *other);

#endif  // TARN_TOOL_OUTFILE_H_
