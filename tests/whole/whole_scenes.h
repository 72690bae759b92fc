// whole_scenes.h - what ranks do together, cut into scenes short enough that
// one of them can be struck at each of its system calls.
//
// Every call of a scene goes through scene_told: the first that is not TARN_OK
// is kept, and the scene then ends as a program would, with the destruction of
// what it holds.
#ifndef TARN_TESTS_WHOLE_WHOLE_SCENES_H_
#define TARN_TESTS_WHOLE_WHOLE_SCENES_H_

#include "tarn/comm.h"
#include "tarn/whole.h"

// What a rank was told, for who looks on.
typedef struct scene_word {
  tarn_status status;  // the first that was not TARN_OK
  double called;       // when the call began that answered it, in seconds
  double answered;
  char text[256];
} scene_word;

typedef struct scene_part {
  tarn_comm *comm;   // NULL: it did not come about
  tarn_place place;  // of wholes
  scene_word *word;  // shared with who looks on
  double called;     // when the last call began
  bool elsewhere;    // another communicator than |comm| told it
} scene_part;

typedef struct scene {
  const char *name;
  bool joins;  // taking the place is a part of it
  void (*play)(const struct scene *scene, scene_part *part);

  // Of wholes: the type, and what they are on; |device| NULL: the host alone.
  tarn_whole_type type;
  const char *device;
  tarn_place_kind kind;
} scene;

extern const scene scenes[];
extern const size_t scene_count;

// Opens what wholes of |it| are on, for rank |rank|; closes it.
tarn_place scene_open(const scene *it, size_t rank);
void scene_close(tarn_place place);

// Says that the calls begin whose answer scene_told gets.
void scene_calls(scene_part *part);

// Whether |status| is TARN_OK; if not, keeps it. Evaluate the call after
// scene_calls: SCENE_OK does.
bool scene_told(scene_part *part, tarn_status status);

#define SCENE_OK(part, call) (scene_calls(part), scene_told(part, call))

#endif  // TARN_TESTS_WHOLE_WHOLE_SCENES_H_
