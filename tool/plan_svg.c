// The picture: to come.
#include "plan_svg.h"

bool plan_svg_write(const tool_verb *verb, const plan_answer *answer,
                    const char *path) {
  (void)answer;
  tool_say(verb, "%s: no pictures yet", path);
  return false;
}
