// job.h - the main function of a program that ranks run together.
#ifndef TARN_EXAMPLES_JOB_JOB_H_
#define TARN_EXAMPLES_JOB_JOB_H_

#include <tarn/tarn.h>

typedef struct job {
  const char *name;   // in front of errors
  const char *wrong;  // with the options; "": nothing
  bool help;          // is all that is wanted
  void (*tell_help)(void);
  tarn_status (*work)(void *run, tarn_comm *comm);
  tarn_status (*end)(void *run);  // also after work that has failed
  void *run;
} job;

// Joins the ranks of the environment, works, and ends. Options are looked at
// when the ranks have met, and all ranks have the same error: rank 0 tells it;
// but where a rank is lost, it may be that one, and each tells.
//
// Returns the exit status of the program.
int job_main(const job *job);

#endif  // TARN_EXAMPLES_JOB_JOB_H_
