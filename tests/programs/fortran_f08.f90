! SPDX-License-Identifier: BSD-3-Clause
! With `use mpi_f08`: handles are types of their own. Prints the same under every MPI.
program fortran_f08
  use mpi_f08
  implicit none
  type(MPI_Status) :: st
  type(MPI_Comm) :: half
  type(MPI_Request) :: r(2)
  type(MPI_Datatype) :: v
  integer :: me, n, got, total, cnt
  real(8) :: a(6), b(3)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPI_Irecv(got, 1, MPI_INTEGER, mod(me+n-1,n), 4, MPI_COMM_WORLD, r(1))
  call MPI_Isend(me, 1, MPI_INTEGER, mod(me+1,n), 4, MPI_COMM_WORLD, r(2))
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  if (got /= mod(me+n-1,n)) print *, 'bad'
  call MPI_Allreduce(me, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me == 0) print *, 'total', total
  call MPI_Comm_split(MPI_COMM_WORLD, mod(me,2), me, half)
  call MPI_Comm_size(half, cnt)
  if (me == 0) print *, 'half', cnt
  call MPI_Type_vector(3, 1, 2, MPI_DOUBLE_PRECISION, v)
  call MPI_Type_commit(v)
  a = [1,2,3,4,5,6]
  call MPI_Sendrecv(a, 1, v, me, 1, b, 3, MPI_DOUBLE_PRECISION, me, 1, MPI_COMM_WORLD, st)
  if (me == 0) print *, b, st%MPI_TAG
  call MPI_Finalize()
end program
