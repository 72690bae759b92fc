// file.h - the file that the process records into: its pages, from many
// threads, without a lock but when it grows.
//
// The file is made when the first page is asked for. It grows by windows that
// have blocks on the disk before they are mapped: storing to a page cannot
// fail, whatever becomes of the disk. If a window cannot be had, recording is
// over, and what is lost is counted in the header.
#ifndef TARN_RECORD_FILE_H_
#define TARN_RECORD_FILE_H_

#include <stdbool.h>

#include "trace/log.h"

// A page of zero bytes for the caller alone; NULL: there is none any more.
tarn__trace_log_page *file_page(void);

// Microseconds since the process was begun.
uint64_t file_time_us(void);

// A number for an event, which may be written later, if at all.
uint64_t file_number(void);

// One more event that could not be written.
void file_lose(void);

// The number of the process in its file. Definitions of one process do not hold
// in the next.
unsigned file_generation(void);

// Whether the file is the parent's: the process is the child of a fork, by
// whichever call, and has not forgotten it yet.
bool file_is_inherited(void);

// Before main. False: the kernel is too old for file_is_inherited, which then
// never holds.
bool file_begin(void);

void file_forget(void);  // in the child of a fork: it has a file of its own

// At exit, by a thread that is not interrupted by events: cuts off the pages
// that no thread took. Later events get pages one by one.
void file_finish(void);

#endif  // TARN_RECORD_FILE_H_
