// python_check.h - whether a layout holds: what it reads of the calling thread
// is compared with what Python says itself.
#ifndef TARN_RECORD_PYTHON_CHECK_H_
#define TARN_RECORD_PYTHON_CHECK_H_

#include "record/python_api.h"
#include "record/python_read.h"

typedef enum python_verdict {
  PYTHON_AGREES,
  PYTHON_DIFFERS,
  PYTHON_RUNS_NOTHING,  // there is no frame to compare
} python_verdict;

// Compares all frames of |thread|, the state of the calling thread, which has
// Python's lock and is not within malloc: Python makes objects of frames. On
// 3.11 that can begin a collection, so it is held off meanwhile. |reader| has
// to be guarded.
python_verdict python_check(const python_api *api, const python_reader *reader,
                            void *thread);

#endif  // TARN_RECORD_PYTHON_CHECK_H_
