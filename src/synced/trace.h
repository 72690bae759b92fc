// trace.h - telling the program's function what happens to buffers.
#ifndef TARN_SYNCED_TRACE_H_
#define TARN_SYNCED_TRACE_H_

#include "synced/core.h"

// One relaxed load: nothing has to be told.
bool tarn__synced_is_traced(void);

// Tells it, with the id and name of |core| filled in. Called without the gate.
void tarn__synced_tell(const tarn__synced_core *core, tarn_synced_event event);

#endif  // TARN_SYNCED_TRACE_H_
