// verbs.h - the verbs of the tool: cmd_<verb>.c defines each, and main.c holds
// the table of them.
#ifndef TARN_TOOL_VERBS_H_
#define TARN_TOOL_VERBS_H_

#include "kit/tool.h"

extern const tool_verb verb_bench;
extern const tool_verb verb_conform;
extern const tool_verb verb_convert;
extern const tool_verb verb_devices;
extern const tool_verb verb_new_plugin;
extern const tool_verb verb_plan;
extern const tool_verb verb_preload;
extern const tool_verb verb_record;
extern const tool_verb verb_replay;
extern const tool_verb verb_run;
extern const tool_verb verb_view;
extern const tool_verb verb_why;

#endif  // TARN_TOOL_VERBS_H_
