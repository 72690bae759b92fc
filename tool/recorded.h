// recorded.h - the files that the recorder leaves, and their finish.
//
// It writes FILE, and FILE.1234 for a child with the process number 1234, or
// FILE.1234-1 for what that child ran next.
// Finished, a file holds the names of its frames and no room to spare; until
// then it is a trace as well, with modules and offsets for names.
#ifndef TARN_TOOL_RECORDED_H_
#define TARN_TOOL_RECORDED_H_

#include "kit/options.h"
#include "kit/tool.h"
#include "symbols.h"

// The path for the recorder, whichever folder the program goes to; NULL after a
// message where no file can be made: its folder is not there, say, or it is
// itself. Free it.
char *recorded_absolute(const tool_verb *verb, const char *path);

// "NAME.tarn" for |program|, or "NAME-2.tarn" and so on: the first that does
// not exist. Free it.
char *recorded_name(const char *program);

// The names of the children's files beside |path| that are there, in order.
void recorded_children(const char *path, options_list *out_paths);

// Whether the child that |child|, a file beside |path|, is of still writes it.
bool recorded_is_open(const char *child, const char *path);

// Whether any process has the file mapped, as those that write it have.
bool recorded_is_in_use(const char *path);

// Whether |file|, |path| or a child's, is empty, and its process gone: there
// was something to record, and no room for it.
bool recorded_is_unwritten(const char *file, const char *path);

// Removes such a file. Why nothing can be written to it, as in errno; 0: it
// could be by now.
int recorded_forget(const char *file);

// Reads the file, names its frames by |table| (NULL: leaves them) and the whole
// after |program|, puts the finished one in its place and says what it holds;
// |*out_peak| is its live peak, 0 after a message. Where a trace has several
// devices, each but the one with most events gets a file of its own,
// "<path>.device-N". After a message the file is as it was.
tool_exit recorded_finish(const tool_verb *verb, const char *path,
                          const char *program, symbols *table,
                          uint64_t *out_peak);

#endif  // TARN_TOOL_RECORDED_H_
