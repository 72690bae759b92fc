// Elements of one dtype to another.
#include "base/convert.h"
