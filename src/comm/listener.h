// listener.h - a socket with a name, in a folder that only this user can enter.
//
// Who finds no socket there, or one behind which nobody listens, puts its own
// there; all others connect. The folder's lock is held meanwhile, and only
// then: nobody waits for another process with it.
#ifndef TARN_COMM_LISTENER_H_
#define TARN_COMM_LISTENER_H_

#include "base/os_peer.h"
#include "tarn/base.h"

typedef struct tarn__comm_listener {
  const char *path;  // the caller's
  const char *name;  // its last part
  tarn__os_folder folder;
  int listener;    // -1: this process does not listen
  uint64_t inode;  // of the socket at which it listens, or has connected
} tarn__comm_listener;

// TARN_E_INVALID      the path is too long or names no file, or the folder is
//                     not this user's alone.
// TARN_E_UNSUPPORTED  the folder is one of several machines.
// TARN_E_IO           the folder cannot be opened.
TARN_MUST_CHECK tarn_status
tarn__listener_find(const char *path, tarn__comm_listener *out_listener);
void tarn__listener_close(tarn__comm_listener *listener);

typedef enum tarn__comm_entry {
  TARN__AS_HOST,    // this process listens now
  TARN__AS_JOINER,  // it is connected
  TARN__LATER,      // somebody is at the listener: it is to be tried again
} tarn__comm_entry;

// Waits for nothing. |*out_fd|: of a joiner, else -1.
//
// TARN_E_INVALID  what is there is no socket of this kind, or another user's.
// TARN_E_IO       the system refused.
TARN_MUST_CHECK tarn_status tarn__listener_try(tarn__comm_listener *listener,
                                               size_t ranks,
                                               tarn__comm_entry *out_entry,
                                               int *out_fd);

// Takes the socket away, and listens no more. Whoever has connected and was not
// let in finds the connection ended.
void tarn__listener_remove(tarn__comm_listener *listener);

// Takes a socket away that a host has left which has ended, if there is one.
void tarn__listener_sweep(const tarn__comm_listener *listener);

#endif  // TARN_COMM_LISTENER_H_
