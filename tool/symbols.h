// symbols.h - what the places of compiled code are called in its source.
//
//   symbols *table = symbols_open();
//   count = symbols_find(table, "/usr/lib/libx.so", 0x1234, places);
//   ... places[0] is in places[1], into which it was inlined, and so on ...
//   symbols_close(table);
//
// Debug information is read from the files themselves and from where the
// system keeps what was split off them; nothing is asked of the network.
#ifndef TARN_TOOL_SYMBOLS_H_
#define TARN_TOOL_SYMBOLS_H_

#include <tarn/trace.h>

enum { SYMBOLS_MOST = 32 };  // places that one address can be

typedef struct symbols symbols;

// Whether this tool was built with what reads symbols (libdw of elfutils). If
// not, nothing is ever found.
bool symbols_are_read(void);

symbols *symbols_open(void);
void symbols_close(symbols *table);

// The call before the return address |address| of |module|, in the module's own
// addresses: the number of places written to |out|, innermost first; 0 if
// nothing is known. A place without a file has the module's path, and so have
// all of the system's own libraries, below /lib and /usr/lib; a line of 0 and a
// function of "" are not known. The texts live as long as |table|.
size_t symbols_find(symbols *table, const char *module, uint64_t address,
                    tarn_trace_frame out[SYMBOLS_MOST]);

#endif  // TARN_TOOL_SYMBOLS_H_
