// The listener: checks of the folder, and one process that listens.
//
// The socket is created, and a stale one replaced, under the lock of the
// folder. Its creator removes it without the lock: it still listens then, so no
// other process does.
#include "comm/listener.h"

#include <errno.h>
#include <string.h>

#include "base/os.h"
#include "base/status.h"

// --- the folder ------------------------------------------------------------

static tarn_status check_path(const char *path) {
  size_t size = strlen(path);
  if (size == 0 || size > TARN__OS_MOST_PATH) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet: the path has %zu bytes, not 1 to %d",
                      size, TARN__OS_MOST_PATH);
  }
  if (path[size - 1] == '/') {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet: '%s' is the path of a folder", path);
  }
  return TARN_OK;
}

// The path of the folder; |out| has room for it.
static void folder_of(const char *path, const char *name, char *out) {
  size_t size = (size_t)(name - path);
  if (size > 1) size--;  // the '/', but of the root
  memcpy(out, path, size);
  if (size == 0) out[size++] = '.';
  out[size] = '\0';
}

static tarn_status check_folder(const tarn__os_folder *folder,
                                const char *path) {
  if (!folder->is_own) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet: the folder '%s' belongs to another user",
                      path);
  }
  if ((folder->mode & 0777) != 0700) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet: the folder '%s' has mode %04o, not 0700",
                      path, (unsigned)folder->mode & 0777);
  }
  if (folder->is_of_network) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "tarn_comm_meet: the folder '%s' is on a network file "
                      "system; ranks need one of their machine",
                      path);
  }
  return TARN_OK;
}

tarn_status tarn__listener_find(const char *path,
                                tarn__comm_listener *out_listener) {
  char folder[TARN__OS_MOST_PATH + 1];
  *out_listener = (tarn__comm_listener){.folder.fd = -1, .listener = -1};
  TARN__TRY(check_path(path));
  const char *slash = strrchr(path, '/');
  out_listener->path = path;
  out_listener->name = slash == NULL ? path : slash + 1;
  folder_of(path, out_listener->name, folder);
  if (!tarn__os_folder_open(folder, &out_listener->folder)) {
    return tarn__fail(TARN_E_IO, "tarn_comm_meet: the folder '%s': %s", folder,
                      strerror(errno));
  }
  tarn_status status = check_folder(&out_listener->folder, folder);
  if (status != TARN_OK) tarn__listener_close(out_listener);
  return status;
}

void tarn__listener_close(tarn__comm_listener *listener) {
  tarn__listener_remove(listener);
  tarn__os_folder_close(&listener->folder);
}

// --- coming in -------------------------------------------------------------

static tarn_status refuse_kind(const tarn__comm_listener *listener) {
  return tarn__fail(TARN_E_INVALID,
                    "tarn_comm_meet: '%s' exists and is not a socket of ranks",
                    listener->path);
}

static tarn_status listen_there(tarn__comm_listener *listener, size_t ranks) {
  listener->listener = tarn__os_listen(listener->path, ranks);
  if (listener->listener >= 0) {
    (void)tarn__os_folder_look(&listener->folder, listener->name,
                               &listener->inode);
    return TARN_OK;
  }
  if (errno == EADDRINUSE) return TARN_OK;
  return tarn__fail(TARN_E_IO, "tarn_comm_meet: cannot listen at '%s': %s",
                    listener->path, strerror(errno));
}

static tarn_status replace(tarn__comm_listener *listener, size_t ranks) {
  if (!tarn__os_folder_remove(&listener->folder, listener->name) &&
      errno != ENOENT) {
    return tarn__fail(
        TARN_E_IO,
        "tarn_comm_meet: the stale socket '%s' cannot be removed: %s",
        listener->path, strerror(errno));
  }
  return listen_there(listener, ranks);
}

static tarn_status connect_there(tarn__comm_listener *listener, size_t ranks,
                                 int *out_fd) {
  int fd = tarn__os_connect(listener->path);
  if (fd >= 0 && !tarn__os_is_of_user(fd)) {
    tarn__os_close(fd);
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet: the socket '%s' belongs to another user",
                      listener->path);
  }
  *out_fd = fd;
  if (fd >= 0 || errno == EAGAIN || errno == ENOENT) return TARN_OK;
  if (errno == ECONNREFUSED) return replace(listener, ranks);
  if (errno == EPROTOTYPE) return refuse_kind(listener);
  return tarn__fail(TARN_E_IO, "tarn_comm_meet: the socket at '%s': %s",
                    listener->path, strerror(errno));
}

static tarn_status enter(tarn__comm_listener *listener, size_t ranks,
                         int *out_fd) {
  uint64_t inode = 0;
  switch (tarn__os_folder_look(&listener->folder, listener->name, &inode)) {
    case TARN__OS_NOTHING:
      return listen_there(listener, ranks);
    case TARN__OS_SOCKET:
      listener->inode = inode;
      return connect_there(listener, ranks, out_fd);
    case TARN__OS_OTHER:
      break;
  }
  return refuse_kind(listener);
}

tarn_status tarn__listener_try(tarn__comm_listener *listener, size_t ranks,
                               int *out_fd) {
  *out_fd = -1;
  if (!tarn__os_folder_lock(&listener->folder)) {
    if (errno == EWOULDBLOCK || errno == EINTR) return TARN_OK;
    return tarn__fail(TARN_E_IO,
                      "tarn_comm_meet: the folder of '%s' cannot be locked: %s",
                      listener->path, strerror(errno));
  }
  tarn_status status = enter(listener, ranks, out_fd);
  tarn__os_folder_unlock(&listener->folder);
  return status;
}

// --- taking it away --------------------------------------------------------

// Whether the socket is there at which this process listens, or to which it has
// connected, and not another one.
static bool is_there(const tarn__comm_listener *listener) {
  uint64_t inode = 0;
  return tarn__os_folder_look(&listener->folder, listener->name, &inode) ==
             TARN__OS_SOCKET &&
         inode == listener->inode;
}

void tarn__listener_remove(tarn__comm_listener *listener) {
  if (listener->listener < 0) return;
  if (is_there(listener)) {
    (void)tarn__os_folder_remove(&listener->folder, listener->name);
  }
  tarn__os_stop_listening(listener->listener);
  listener->listener = -1;
}

// Whether the process at the socket to which this one has connected may still
// be ending: there, connections are made, or wait to be. Another's socket is
// left alone.
static bool sweep(const tarn__comm_listener *listener) {
  bool listens = false;
  if (!tarn__os_folder_lock(&listener->folder)) return true;
  if (is_there(listener)) {
    int fd = tarn__os_connect(listener->path);
    listens = fd >= 0 || errno == EAGAIN;
    if (fd < 0 && errno == ECONNREFUSED) {
      (void)tarn__os_folder_remove(&listener->folder, listener->name);
    }
    tarn__os_close_all(&fd, 1);
  }
  tarn__os_folder_unlock(&listener->folder);
  return listens;
}

// The kernel may close the connections of a process before its listening
// socket.
void tarn__listener_sweep(const tarn__comm_listener *listener) {
  static const uint64_t while_ns = 1000000;
  for (int i = 0; i < 1000 && sweep(listener); i++)
    tarn__os_await_any(NULL, 0, while_ns, NULL);
}
