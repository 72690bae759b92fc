// frame_names.h - frames and modules as people read them.
//
// Names come from files and may hold any bytes but NUL: the caller neutralises
// them before they are shown. Of files and functions the first 1024 bytes are
// shown. Each function returns a text to free().
#ifndef TARN_TOOL_FRAME_NAMES_H_
#define TARN_TOOL_FRAME_NAMES_H_

#include "holders.h"

// "file:line function"; without ":line" where no line is known, without the
// file where that is unknown; "(unknown)" without either.
char *frame_names_frame(const tarn_trace_frame *frame);

// That of its frame, its tag, or "(before the trace began)", "(no stack)",
// "(never freed in the trace)", "(12 others)".
char *frame_names_holder(const tarn_trace *trace, const holder *h);

// The same, shorter: without |root| in front of the file and "a/../" within,
// and without the arguments of functions of C++; "tag weights" of a tag.
char *frame_names_short(const tarn_trace *trace, const holder *h,
                        const char *root);

// The folder that all files of own code have in common, with a '/' at its end;
// "" if they have none.
char *frame_names_root(const tarn_trace *trace, owners *o);

// The module of a frame:
//
//   /home/me/run/net/model.py    "net.model", below the |root| /home/me/run/
//   .../site-packages/torch/nn/functional.py       "torch.nn.functional"
//   torch::autograd::Node::operator()(...)         "torch::autograd::Node"
//   /usr/lib/libopenblas.so.0                      "libopenblas.so.0"
//
// Of its parts the first |depth|, 0 for all.
char *frame_names_module(const tarn_trace_frame *frame, const char *root,
                         size_t depth);

#endif  // TARN_TOOL_FRAME_NAMES_H_
