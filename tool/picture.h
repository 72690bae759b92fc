// picture.h - a replay as a page that a browser shows: address x time.
#ifndef TARN_TOOL_PICTURE_H_
#define TARN_TOOL_PICTURE_H_

#include "report.h"

// Draws one report into the file at |path|, or several into the folder at
// |path|, which is made if needed: <trace>.html each. The results need their
// history. False after a message.
bool picture_write_all(const tool_verb *verb, const report *reports,
                       size_t count, const char *path);

// A file's name for a trace's: "@bert-layer" and "/a/bert-layer.pickle" give
// "bert-layer.html". Only letters, digits, '-', '_' and '.' stay; |out| has
// PICTURE_NAME_SIZE bytes. Returns it.
enum { PICTURE_NAME_SIZE = 128 };
char *picture_file_name(const char *trace, char *out);

#endif  // TARN_TOOL_PICTURE_H_
