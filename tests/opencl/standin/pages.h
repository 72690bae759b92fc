// pages.h - pages of memory under one address or two.
#ifndef TARN_TESTS_OPENCL_STANDIN_PAGES_H_
#define TARN_TESTS_OPENCL_STANDIN_PAGES_H_

#include <stdbool.h>
#include <stddef.h>

// |shown| is the address that a program gets, |mirror| the one at which the
// stand-in reads and writes. They are the same bytes, and the same address
// unless |shown| is to be closed. Both are |skew| bytes behind the beginning of
// a page, so that no program gets a better alignment than it was promised;
// |size| bytes are left from there.
typedef struct standin_pages {
  unsigned char *shown;
  unsigned char *mirror;
  size_t skew;
  size_t size;
} standin_pages;

enum { STANDIN_PAGE = 4096 };

// At least |size| bytes, zero. |skew| is less than a page. With |closed| the
// host reaches |shown| only where standin_pages_open allows it. False if there
// is no memory.
bool standin_pages_take(size_t size, size_t skew, bool closed,
                        standin_pages *out);

// Lets the host reach the pages with these bytes, or not any more. The second
// counts from the beginning of the first page, in whole pages.
void standin_pages_open(const standin_pages *pages, size_t offset, size_t size);
void standin_pages_close(const standin_pages *pages, size_t first, size_t size);

// Gives the bytes back. |shown| stays taken and faults, so that what uses it
// now is found, until standin_pages_forget.
void standin_pages_drop(standin_pages *pages);
void standin_pages_forget(standin_pages *pages);

#endif  // TARN_TESTS_OPENCL_STANDIN_PAGES_H_
