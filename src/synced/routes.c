// To be written.
#include "synced/routes.h"
