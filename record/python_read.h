// python_read.h - reads frames of Python of the calling thread, by a layout.
//
// The frames of a thread that waits in malloc change by nobody's hand: whoever
// has the interpreter's lock meanwhile runs other frames. So no lock is needed,
// and no reference: a frame keeps its code, the code its texts.
//
// Cost: some six cache lines a frame.
#ifndef TARN_RECORD_PYTHON_READ_H_
#define TARN_RECORD_PYTHON_READ_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/python_layout.h"

typedef struct python_reader {
  const python_layout *layout;
  const void *code_type;  // PyCode_Type: what is not of it is no code
  // As long as the layout has not been checked: what it says is read by the
  // kernel, which refuses where there is no memory.
  bool guarded;
} python_reader;

typedef struct python_frame {
  const unsigned char *code;
  int32_t position;  // in its instructions, in bytes; below 0: before the first
  bool is_entry;     // the last that its call of the interpreter runs
} python_frame;

// Whether the kernel reads for a guarded reader: a filter of system calls may
// forbid it.
bool python_read_is_guarded(void);

// The frames of |thread|, the state of the calling thread, innermost first; at
// most |most|.
int python_read_frames(const python_reader *reader, const void *thread,
                       python_frame *out_frames, int most);

// What tells a frame from all others of the process: its code's address, and
// all that makes its file, function and line, as it reads. Code can end, and
// other code get its address, its texts' and its table's.
uint64_t python_read_key(const python_reader *reader,
                         const python_frame *frame);

typedef enum python_text { PYTHON_FILE, PYTHON_NAME } python_text;

// Writes it in UTF-8, cut where |room| ends. Returns its length.
size_t python_read_text(const python_reader *reader, const python_frame *frame,
                        python_text which, char *out, size_t room);

uint32_t python_read_line(const python_reader *reader,
                          const python_frame *frame);

// Copies what the layout takes for the first |size| bytes of the table of lines
// and of the instructions; zeros where there is no memory. Returns how many
// bytes the table has.
size_t python_read_table(const python_reader *reader, const python_frame *frame,
                         void *out, size_t size);
void python_read_instructions(const python_reader *reader,
                              const python_frame *frame, void *out,
                              size_t size);

#endif  // TARN_RECORD_PYTHON_READ_H_
