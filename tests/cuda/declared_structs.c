// The structs that the plug-in declares.
#include "declared_structs.h"

#include "cuda/api.h"

const declared_member declared_members[] = {DECLARED_MEMBERS(DECLARED_MEMBER)};
