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
tarn__log_page *file_page(void);

// Microseconds since the process was begun.
uint64_t file_time_us(void);

// One more event that could not be written.
void file_lose(void);

// Counts the processes of a file: what is defined in one is not in the next.
unsigned file_generation(void);

void file_begin(void);   // before main
void file_forget(void);  // in the child of a fork: it has a file of its own
void file_finish(void);  // at exit: cuts off the pages that nobody took

#endif  // TARN_RECORD_FILE_H_
