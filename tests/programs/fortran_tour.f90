! SPDX-License-Identifier: BSD-3-Clause
! A tour of what Fortran programs do, with `use mpi`. Every rank checks; rank 0 says what it found.
! The output is the same under every MPI, for any number of ranks.
module tour
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

  ! A user's operation, on a derived type: the pair with the larger first element.
  subroutine larger(in, inout, length, datatype)
    integer, intent(in) :: length, datatype
    double precision, intent(in) :: in(2, length)
    double precision, intent(inout) :: inout(2, length)
    integer :: i, bytes, ierr
    call MPI_Type_size(datatype, bytes, ierr)
    if (bytes /= 16) bad = bad + 1
    do i = 1, length
      if (in(1, i) > inout(1, i)) inout(:, i) = in(:, i)
    end do
  end subroutine

  subroutine copy_attr(comm, keyval, extra, value_in, value_out, flag, ierr)
    integer :: comm, keyval, ierr
    integer(MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    value_out = value_in + extra
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine

  subroutine point_to_point
    integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2), requests(2)
    integer :: right, left, ierr, count, index
    integer, volatile :: got ! it changes between calls that do not name it
    logical :: flag
    double precision, volatile :: a(8), b(8)
    right = mod(me + 1, n)
    left = mod(me + n - 1, n)
    got = -1
    call MPI_Sendrecv(me, 1, MPI_INTEGER, right, 7, got, 1, MPI_INTEGER, left, MPI_ANY_TAG, &
                      MPI_COMM_WORLD, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, count, ierr)
    call check('sendrecv', got == left .and. status(MPI_SOURCE) == left .and. &
               status(MPI_TAG) == 7 .and. count == 1)
    a = me
    b = -1
    call MPI_Irecv(b, 8, MPI_DOUBLE_PRECISION, left, 8, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(a, 8, MPI_DOUBLE_PRECISION, right, 8, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, statuses, ierr)
    call check('waitall', all(b == left) .and. all(requests == MPI_REQUEST_NULL) .and. &
               statuses(MPI_SOURCE, 1) == left)
    call MPI_Recv_init(got, 1, MPI_INTEGER, left, 9, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Start(requests(1), ierr)
    call MPI_Send(100 + me, 1, MPI_INTEGER, right, 9, MPI_COMM_WORLD, ierr)
    call MPI_Wait(requests(1), status, ierr)
    call check('persistent', got == 100 + left .and. requests(1) /= MPI_REQUEST_NULL)
    call MPI_Start(requests(1), ierr)
    call MPI_Send(200 + me, 1, MPI_INTEGER, right, 9, MPI_COMM_WORLD, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, ierr)
    end do
    call check('persistent again', got == 200 + left)
    call MPI_Request_free(requests(1), ierr)
    call check('request freed', requests(1) == MPI_REQUEST_NULL)
    requests = MPI_REQUEST_NULL
    call MPI_Irecv(got, 1, MPI_INTEGER, left, 10, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Send(300 + me, 1, MPI_INTEGER, right, 10, MPI_COMM_WORLD, ierr)
    call MPI_Waitany(2, requests, index, status, ierr)
    call check('waitany counts from one', index == 2 .and. got == 300 + left)
    call MPI_Recv(got, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, status, ierr)
    call check('proc null', status(MPI_SOURCE) == MPI_PROC_NULL)
  end subroutine

  subroutine types_and_operations
    integer :: pair, op, ierr, column, i, got(2)
    double precision :: mine(2), best(2), matrix(4, 3), vector(3)
    integer :: send(2)
    call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, pair, ierr)
    call MPI_Type_commit(pair, ierr)
    call MPI_Op_create(larger, .true., op, ierr)
    mine = [dble(mod(me * 7, n + 3)), dble(me)]
    call MPI_Allreduce(mine, best, 1, pair, op, MPI_COMM_WORLD, ierr)
    call check('user operation', best(1) == maxval([(dble(mod(i * 7, n + 3)), i=0, n - 1)]))
    call MPI_Op_free(op, ierr)
    call MPI_Type_free(pair, ierr)
    call check('freed handles are null', op == MPI_OP_NULL .and. pair == MPI_DATATYPE_NULL)
    call MPI_Type_vector(3, 1, 4, MPI_DOUBLE_PRECISION, column, ierr)
    call MPI_Type_commit(column, ierr)
    matrix = me
    matrix(2, :) = [1d0, 2d0, 3d0] + me
    call MPI_Sendrecv(matrix(2, 1), 1, column, me, 1, vector, 3, MPI_DOUBLE_PRECISION, me, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check('a row as a vector type', all(vector == [1d0, 2d0, 3d0] + me))
    call MPI_Type_free(column, ierr)
    send = [me, -me]
    call MPI_Allreduce(send, got, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    call check('maxloc', got(1) == n - 1 .and. got(2) == -(n - 1))
    vector = me + 1
    call MPI_Allreduce(MPI_IN_PLACE, vector, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check('in place', all(vector == n * (n + 1) / 2))
  end subroutine

  subroutine communicators
    integer :: world, group, some, rest, half, ierr, key, size, rank, cart, other, i
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    character(MPI_MAX_OBJECT_NAME) :: name
    integer :: length, coords(1)
    call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
    call MPI_Group_incl(world, (n + 1) / 2, [(i, i=0, (n - 1) / 2)], some, ierr)
    call MPI_Group_difference(world, some, rest, ierr)
    call MPI_Group_size(rest, size, ierr)
    call check('groups', size == n - (n + 1) / 2)
    call MPI_Comm_create(MPI_COMM_WORLD, some, half, ierr)
    call check('comm_create', (half /= MPI_COMM_NULL) .eqv. (me < (n + 1) / 2))
    if (half /= MPI_COMM_NULL) call MPI_Comm_free(half, ierr)
    group = some
    call MPI_Group_free(some, ierr)
    call MPI_Group_free(rest, ierr)
    call MPI_Group_free(world, ierr)
    call MPI_Comm_create_keyval(copy_attr, MPI_COMM_NULL_DELETE_FN, key, 5_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(MPI_COMM_WORLD, other, ierr)
    call MPI_Comm_set_attr(other, key, 37_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_get_attr(other, key, value, flag, ierr)
    call check('attribute', flag .and. value == 37)
    call MPI_Comm_dup(other, half, ierr)
    call MPI_Comm_get_attr(half, key, value, flag, ierr)
    call check('attribute copied by callback', flag .and. value == 42)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
    call check('tag ub', flag .and. value >= 32767)
    call MPI_Comm_set_name(half, 'tour de force', ierr)
    call MPI_Comm_get_name(half, name, length, ierr)
    call check('name', name(1:length) == 'tour de force' .and. name(length + 1:) == ' ')
    call MPI_Comm_free(half, ierr)
    call MPI_Comm_free(other, ierr)
    call MPI_Comm_free_keyval(key, ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(me, 2), -me, half, ierr)
    call MPI_Comm_size(half, size, ierr)
    call MPI_Comm_rank(half, rank, ierr)
    call check('split', size == (n + 1 - mod(me, 2)) / 2 .and. rank == size - 1 - me / 2)
    call MPI_Comm_free(half, ierr)
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [n], [.true.], .false., cart, ierr)
    call MPI_Cart_coords(cart, me, 1, coords, ierr)
    call check('cart', coords(1) == me)
    call MPI_Comm_free(cart, ierr)
  end subroutine

  subroutine others
    integer :: ierr, code, length, cls, info, requests(1)
    character(MPI_MAX_ERROR_STRING) :: text
    character(16) :: value
    logical :: flag
    double precision :: t
    integer :: v(4)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
    call MPI_Send(me, 1, MPI_INTEGER, n + 5, 0, MPI_COMM_WORLD, code)
    call MPI_Error_class(code, cls, ierr)
    call MPI_Error_string(code, text, length, ierr)
    call check('errors are returned', cls == MPI_ERR_RANK .and. length > 0)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, 'where', 'here and there', ierr)
    call MPI_Info_get(info, 'where', 16, value, flag, ierr)
    call check('info', flag .and. value == 'here and there')
    call MPI_Info_free(info, ierr)
    t = MPI_Wtime()
    call check('time', MPI_Wtime() >= t .and. MPI_Wtick() > 0)
    v = me
    call MPI_Ibcast(v, 4, MPI_INTEGER, n - 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
    call check('ibcast', all(v == n - 1))
  end subroutine
end module

program fortran_tour
  use tour
  implicit none
  integer :: ierr, provided
  logical :: flag
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  call MPI_Initialized(flag, ierr)
  call check('initialized', flag .and. provided >= MPI_THREAD_FUNNELED)
  call point_to_point
  call types_and_operations
  call communicators
  call others
  if (me == 0) print '(A,I0)', 'bad: ', bad
  call MPI_Finalize(ierr)
  if (bad > 0) stop 1
end program
