! SPDX-License-Identifier: BSD-3-Clause
! Each call of Debian's Fortran library that looks into an object instead of asking for what it
! wants: communicators and groups (sizes, attributes), requests (their integers), types, operations,
! generalized requests. The output is the same under every MPI, for any number of ranks.
module fields
  use mpi
  implicit none
  integer :: me, n, bad = 0
contains
  subroutine check(what, good)
    character(*), intent(in) :: what
    logical, intent(in) :: good
    logical :: everywhere
    integer :: ierr
    call MPI_Allreduce(good, everywhere, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
    if (.not. everywhere) bad = bad + 1
    if (me == 0) print '(A,L2)', what, everywhere
  end subroutine

  ! One integer to each of the peers: ranks first, first + 1, … of the job.
  subroutine alltoallw(comm, peers, first, what)
    integer, intent(in) :: comm, peers, first
    character(*), intent(in) :: what
    integer :: counts(peers), displs(peers), types(peers), req, ierr, i, mine
    integer, volatile :: send(peers), got(peers)
    call MPI_Comm_rank(comm, mine, ierr)
    counts = 1
    displs = [(4 * i, i=0, peers - 1)]
    types = MPI_INTEGER
    send = [(100 * me + i, i=0, peers - 1)]
    got = -1
    call MPI_Alltoallw(send, counts, displs, types, got, counts, displs, types, comm, ierr)
    call check(what // ' alltoallw', ierr == MPI_SUCCESS .and. &
               all(got == [(100 * (first + i) + mine, i=0, peers - 1)]))
    got = -1
    call MPI_Ialltoallw(send, counts, displs, types, got, counts, displs, types, comm, req, ierr)
    call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)
    call check(what // ' ialltoallw', ierr == MPI_SUCCESS .and. &
               all(got == [(100 * (first + i) + mine, i=0, peers - 1)]))
  end subroutine

  subroutine alltoallw_in_place
    integer :: counts(n), displs(n), types(n), ierr, i
    integer :: both(n)
    counts = 1
    displs = [(4 * i, i=0, n - 1)]
    types = MPI_INTEGER
    both = [(100 * me + i, i=0, n - 1)]
    call MPI_Alltoallw(MPI_IN_PLACE, counts, displs, types, both, counts, displs, types, &
                       MPI_COMM_WORLD, ierr)
    call check('alltoallw in place', all(both == [(100 * i + me, i=0, n - 1)]))
  end subroutine

  subroutine communicators
    integer :: half, inter, dup, req, ierr, middle, peers, none(1), value
    middle = (n + 1) / 2
    call alltoallw(MPI_COMM_WORLD, n, 0, 'world')
    call alltoallw(MPI_COMM_SELF, 1, me, 'self')
    call alltoallw_in_place
    call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
    call alltoallw(dup, n, 0, 'a copy')
    call MPI_Comm_free(dup, ierr)
    call MPI_Comm_idup(MPI_COMM_WORLD, dup, req, ierr)
    call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)
    call alltoallw(dup, n, 0, 'a late copy')
    call MPI_Comm_free(dup, ierr)
    none = 0
    value = MPI_INTEGER
    call MPI_Alltoallw(none, none, none, [value], none, none, none, [value], MPI_COMM_NULL, ierr)
    call check('null communicator', ierr /= MPI_SUCCESS)
    if (n == 1) return
    call MPI_Comm_split(MPI_COMM_WORLD, merge(0, 1, me < middle), me, half, ierr)
    call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, merge(middle, 0, me < middle), 5, inter, ierr)
    peers = merge(n - middle, middle, me < middle)
    call alltoallw(inter, peers, merge(middle, 0, me < middle), 'an intercommunicator')
    call MPI_Comm_free(inter, ierr)
    call MPI_Comm_free(half, ierr)
  end subroutine

  ! Handles of new groups are read out of the groups.
  subroutine groups
    integer :: world, g(7), ierr, i, size, total
    call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
    call MPI_Group_incl(world, 1, [0], g(1), ierr)
    call MPI_Group_excl(world, 1, [0], g(2), ierr)
    call MPI_Group_union(g(1), g(2), g(3), ierr)
    call MPI_Group_intersection(g(3), g(1), g(4), ierr)
    call MPI_Group_difference(world, g(4), g(5), ierr)
    call MPI_Group_range_incl(world, 1, reshape([0, n - 1, 1], [3, 1]), g(6), ierr)
    call MPI_Group_range_excl(world, 1, reshape([0, n - 1, 1], [3, 1]), g(7), ierr)
    total = 0
    do i = 1, 7
      call MPI_Group_size(g(i), size, ierr)
      total = total + size * 10 ** (i - 1)
      if (size > 0) call MPI_Group_free(g(i), ierr)
    end do
    call check('groups', total == 1 + (n - 1) * 10 + n * 100 + 1000 + (n - 1) * 10000 &
               + n * 100000)
    call MPI_Group_free(world, ierr)
  end subroutine

  ! Requests that complete, and persistent ones that do not go.
  subroutine requests
    integer :: r(4), ierr, index, count, indices(4), i
    integer :: statuses(MPI_STATUS_SIZE, 4), status(MPI_STATUS_SIZE)
    integer, volatile :: got(4)
    logical :: flag
    do i = 1, 4
      call MPI_Irecv(got(i), 1, MPI_INTEGER, me, i, MPI_COMM_WORLD, r(i), ierr)
    end do
    do i = 1, 4
      call MPI_Send(10 * i, 1, MPI_INTEGER, me, i, MPI_COMM_WORLD, ierr)
    end do
    call MPI_Wait(r(1), status, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Testany(1, r(2:2), index, flag, status, ierr)
    end do
    call MPI_Testsome(1, r(3:3), count, indices, statuses, ierr)
    if (count == 0) call MPI_Waitsome(1, r(3:3), count, indices, statuses, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(1, r(4:4), flag, statuses, ierr)
    end do
    call check('requests', all(r == MPI_REQUEST_NULL) .and. all(got == [10, 20, 30, 40]))
    call MPI_Recv_init(got(1), 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, r(1), ierr)
    call MPI_Send_init(got(2), 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, r(2), ierr)
    got(2) = 77
    call MPI_Startall(2, r, ierr)
    call MPI_Waitall(2, r, statuses, ierr)
    call check('persistent requests', got(1) == 77 .and. all(r(1:2) /= MPI_REQUEST_NULL))
    call MPI_Request_free(r(1), ierr)
    call MPI_Request_free(r(2), ierr)
    call check('request_free', all(r(1:2) == MPI_REQUEST_NULL))
  end subroutine

  subroutine query(extra, status, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierr
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra), ierr)
    call MPI_Status_set_cancelled(status, .false., ierr)
    ierr = MPI_SUCCESS
  end subroutine

  subroutine release(extra, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierr
    ierr = merge(MPI_SUCCESS, MPI_ERR_OTHER, extra == 3)
  end subroutine

  subroutine cancel(extra, complete, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierr
    ierr = merge(MPI_ERR_OTHER, MPI_SUCCESS, complete .and. extra /= 3)
  end subroutine

  subroutine generalized
    integer :: req, ierr, status(MPI_STATUS_SIZE), count
    call MPI_Grequest_start(query, release, cancel, 3_MPI_ADDRESS_KIND, req, ierr)
    call MPI_Grequest_complete(req, ierr)
    call MPI_Wait(req, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, count, ierr)
    call check('generalized request', count == 3 .and. req == MPI_REQUEST_NULL)
  end subroutine

  subroutine sum_up(in, inout, length, datatype)
    integer :: length, datatype
    integer :: in(length), inout(length)
    if (datatype == MPI_INTEGER) inout = inout + in
  end subroutine

  ! Attributes of communicators, old and new, and of types; errors that the library raises itself.
  subroutine attributes
    integer :: key, tkey, type, ierr, old, op, got
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag, old_flag, type_flag
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, &
                                0_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 41_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierr)
    call MPI_Attr_get(MPI_COMM_WORLD, key, old, old_flag, ierr)
    call check('attributes', flag .and. old_flag .and. value == 41 .and. old == 41)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
    call MPI_Comm_free_keyval(key, ierr)
    call MPI_Type_contiguous(3, MPI_INTEGER, type, ierr)
    call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, tkey, &
                                0_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_set_attr(type, tkey, 43_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_get_attr(type, tkey, value, type_flag, ierr)
    call check('attributes of types', type_flag .and. value == 43)
    call MPI_Type_free(type, ierr)
    call MPI_Type_free_keyval(tkey, ierr)
    call MPI_Op_create(sum_up, .true., op, ierr)
    call MPI_Allreduce(me, got, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
    call check('an operation of its own', got == n * (n - 1) / 2)
    call MPI_Op_free(op, ierr)
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, type, ierr)
    call check('a size that there is not', ierr /= MPI_SUCCESS)
  end subroutine
end module

program fortran_fields
  use fields
  implicit none
  integer :: ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call communicators
  call groups
  call requests
  call generalized
  call attributes
  if (me == 0) print '(A,I0)', 'bad: ', bad
  call MPI_Finalize(ierr)
end program
