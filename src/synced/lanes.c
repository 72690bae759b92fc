// To be written.
#include "synced/lanes.h"
