// process.h - a process that is not the one it was: the child of a fork.
#ifndef TARN_RECORD_PROCESS_H_
#define TARN_RECORD_PROCESS_H_

// In the child: what was recorded is the parent's.
void process_forget(void);

#endif  // TARN_RECORD_PROCESS_H_
