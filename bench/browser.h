// browser.h - opens a page in a Chromium without a window.
#ifndef TARN_BENCH_BROWSER_H_
#define TARN_BENCH_BROWSER_H_

#include <stdbool.h>
#include <stddef.h>

enum { BROWSER_PATH_SIZE = 4096 };

// The program: what TARN_CHROMIUM names in the environment, or a Chromium or
// Chrome on the PATH, into |out|, BROWSER_PATH_SIZE bytes. False if there is
// none.
bool browser_find(char *out);

// Opens |path|, a file, with |fragment| behind its address ("#measure" or ""),
// waits for the event 'load' and returns the document as it is then; free it.
// NULL if there is none within |seconds|; |why|, |why_size| bytes, then says
// so. The program has a profile of its own, which is removed afterwards.
char *browser_dump(const char *program, const char *path, const char *fragment,
                   unsigned seconds, char *why, size_t why_size);

#endif  // TARN_BENCH_BROWSER_H_
