#pragma once
/// \file
/// Functions that CUDA sources compile for the host and for the device.

#ifdef __CUDACC__
#define SOLENOID_ANYWHERE __host__ __device__
#else
#define SOLENOID_ANYWHERE
#endif
