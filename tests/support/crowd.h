// crowd.h - one device in use by four threads, for tests of plug-ins
// over stand-ins for their drivers.
#ifndef TARN_TESTS_SUPPORT_CROWD_H_
#define TARN_TESTS_SUPPORT_CROWD_H_

// Four threads use memory, copies, streams, events, callbacks and rows of
// |device| at the same time. Each opens and closes it as well, so that some
// find it gone. What comes back is checked; the thread sanitizer watches the
// rest.
void crowd_use(const char *device);

#endif  // TARN_TESTS_SUPPORT_CROWD_H_
