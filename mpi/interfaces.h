// interfaces.h - which network interfaces MPI reaches other machines by.
#ifndef TARN_MPI_INTERFACES_H_
#define TARN_MPI_INTERFACES_H_

#include <stddef.h>

// Writes those of this machine that MPI has been told to use, each with its
// IPv4 address, and the setting; all but the loopback where it has been told
// nothing: "v1 10.231.77.1 (btl_tcp_if_include=10.231.77.0/24)". One that is
// down, or has no carrier, is said to be. Ends with a NUL.
//
// MPI does not tell which of them it has taken, nor whether it takes none, as
// in a network that has no interfaces of IP.
void tarn__mpi_interfaces(char *out, size_t out_size);

#endif  // TARN_MPI_INTERFACES_H_
