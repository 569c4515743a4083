// Declared by cufft.h.
#pragma once
#include "cufft.h"
