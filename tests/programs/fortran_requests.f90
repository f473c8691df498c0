! SPDX-License-Identifier: BSD-3-Clause
! Generalized requests of Fortran: their functions change the program's own integer.
module functions
    use mpi
    implicit none
contains
    subroutine query(extra, status, ierr)
        integer(MPI_ADDRESS_KIND) :: extra
        integer :: status(MPI_STATUS_SIZE), ierr
        status(MPI_SOURCE) = 3
        status(MPI_TAG) = 4
        call MPI_Status_set_cancelled(status, .false., ierr)
        call MPI_Status_set_elements(status, MPI_INTEGER, 5, ierr)
        extra = extra + 10
        ierr = MPI_SUCCESS
    end subroutine
    subroutine release(extra, ierr)
        integer(MPI_ADDRESS_KIND) :: extra
        integer :: ierr
        extra = extra + 100
        ierr = MPI_SUCCESS
    end subroutine
    subroutine cancel(extra, complete, ierr)
        integer(MPI_ADDRESS_KIND) :: extra
        logical :: complete
        integer :: ierr
        extra = extra + 1
        ierr = MPI_SUCCESS
    end subroutine
end module

program requests
    use mpi
    use functions
    implicit none
    integer :: ierr, request, n, status(MPI_STATUS_SIZE), bad = 0
    integer(MPI_ADDRESS_KIND), volatile :: extra = 1000
    call MPI_Init(ierr)
    call MPI_Grequest_start(query, release, cancel, extra, request, ierr)
    call MPI_Cancel(request, ierr)
    if (extra /= 1001) bad = bad + 1
    call MPI_Grequest_complete(request, ierr)
    call MPI_Wait(request, status, ierr)
    if (extra /= 1111 .or. request /= MPI_REQUEST_NULL) bad = bad + 1
    call MPI_Get_count(status, MPI_INTEGER, n, ierr)
    if (n /= 5 .or. status(MPI_SOURCE) /= 3 .or. status(MPI_TAG) /= 4) bad = bad + 1
    print '(a,i0)', 'bad: ', bad
    call MPI_Finalize(ierr)
end program
