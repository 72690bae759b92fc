// picture.h - a replay as a page that a browser shows: address x time.
#ifndef TARN_TOOL_PICTURE_H_
#define TARN_TOOL_PICTURE_H_

#include "outfile.h"
#include "report.h"

// The paths of the pictures for the inputs of |rules|: for one input |path|
// itself; for several files <trace>.html in the folder |path|, which is made if
// needed, all different. False after a message if one cannot or must not be
// written there; existing files stay.
bool picture_paths_make(const outfile_rules *rules, const char *path,
                        options_list *out_paths);

// Draws a report into each of |paths|. The results need their history. A file
// that was there is replaced by a whole page or not at all. False if any
// failed, after a message for each.
bool picture_write_all(const tool_verb *verb, const report *reports,
                       const options_list *paths);

// A file's name for a trace's: "@bert-layer" and "/a/bert-layer.pickle" give
// "bert-layer.html". Only letters, digits, '-', '_' and '.' stay; |out| has
// PICTURE_NAME_SIZE bytes. Returns it.
enum { PICTURE_NAME_SIZE = 128 };
char *picture_file_name(const char *trace, char *out);

#endif  // TARN_TOOL_PICTURE_H_
