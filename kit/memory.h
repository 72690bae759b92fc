// memory.h - the memory of the machine, and the resident memory of a process.
// 0: unknown.
#ifndef TARN_KIT_MEMORY_H_
#define TARN_KIT_MEMORY_H_

#include <stddef.h>
#include <sys/types.h>

// Of this machine, or what the control group of this process may have.
size_t memory_of_machine(void);

// The bytes that could be allocated now.
size_t memory_available(void);

size_t memory_resident(pid_t pid);

// The most that this process had resident since memory_forget_peak, or in all.
size_t memory_resident_peak(void);
void memory_forget_peak(void);

#endif  // TARN_KIT_MEMORY_H_
