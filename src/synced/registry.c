// To be written.
#include "synced/registry.h"
