// To be written.
#include "synced/station.h"
