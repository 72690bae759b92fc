// labels.h - the output of several programs, line by line, each line marked
// with the number of its program, as in "[2] loss 0.41".
//
//   rank 0  stdout ─pipe─► line ─┐
//           stderr ─pipe─► line ─┼─► stdout of the tool
//   rank 1  stdout ─pipe─► line ─┤
//           stderr ─pipe─► line ─┴─► stderr of the tool   (each to its own)
//
// Messages of the tool go the same way, unmarked.
//
// Bytes are passed on as they are. A line is held until it is whole; at the end
// of its stream it is passed on as it is, with a newline. One of more than
// LABELS_LINE bytes becomes several. While the output is not read, no more
// input is read, and the programs wait, as they would without labels.
#ifndef TARN_TOOL_LABELS_H_
#define TARN_TOOL_LABELS_H_

#include <poll.h>
#include <stddef.h>

#include "kit/tool.h"

enum { LABELS_LINE = 64 << 10 };

typedef struct labels labels;

// For programs 0 to |count| - 1; 0: for what the tool says alone.
labels *labels_create(size_t count);
void labels_destroy(labels *l);

// Before program |index| is started: makes its pipes. 0, or why not, as in
// errno.
int labels_open(labels *l, size_t index);

// In the child: its output goes there. False after a message.
bool labels_redirect(labels *l, size_t index);

// When it has been started, or will not be: the program alone has the ends that
// are written to.
void labels_let_go(labels *l, size_t index);

// The largest number of descriptors to poll.
size_t labels_watched(const labels *l);

// Fills |out_polls|, room for labels_watched, for poll, and returns how many
// there are. When poll has filled in what has become possible, labels_attend
// does it, without a wait.
size_t labels_watch(labels *l, struct pollfd *out_polls);
void labels_attend(labels *l);

// Writes "tarn VERB: text" to stderr as its reader accepts it: a reader that
// does not read does not hold up the programs. The text is not neutralised.
void labels_say(labels *l, const tool_verb *verb, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Program |index| has ended: passes on what it has left, as far as it is taken
// at once, so that what the tool says of it stands behind that.
void labels_drain(labels *l, size_t index);

// All have ended: passes on what they left, and waits until it is taken. What
// others still write, to whom they gave their output, is lost. False after a
// message: not all of it could be written.
bool labels_finish(labels *l, const tool_verb *verb);

#endif  // TARN_TOOL_LABELS_H_
