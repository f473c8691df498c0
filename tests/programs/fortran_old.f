! SPDX-License-Identifier: BSD-3-Clause
! The old way: fixed form, mpif.h, MPI-1's names. Prints the same under every MPI.
      program old
      implicit none
      include 'mpif.h'
      integer me, n, ierr, i, key, value, req, got, total
      integer stat(MPI_STATUS_SIZE), pos, space
      logical flag
      character*64 packed
      common /store/ packed
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, me, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, 0,
     &                       ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, 11 + me, ierr)
      value = 0
      call MPI_ATTR_GET(MPI_COMM_WORLD, key, value, flag, ierr)
      if (.not. flag .or. value .ne. 11 + me) print *, 'bad attribute'
      call MPI_ATTR_DELETE(MPI_COMM_WORLD, key, ierr)
      call MPI_ATTR_GET(MPI_COMM_WORLD, key, value, flag, ierr)
      if (flag) print *, 'attribute still there'
      call MPI_KEYVAL_FREE(key, ierr)
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
      if (.not. flag .or. value .lt. 32767) print *, 'bad tag ub'
      pos = 0
      call MPI_PACK(me, 1, MPI_INTEGER, packed, 64, pos,
     &              MPI_COMM_WORLD, ierr)
      call MPI_PACK(2.5d0, 1, MPI_DOUBLE_PRECISION, packed, 64, pos,
     &              MPI_COMM_WORLD, ierr)
      call MPI_PACK_SIZE(1, MPI_INTEGER, MPI_COMM_WORLD, space, ierr)
      if (pos .ne. 12 .or. space .lt. 4) print *, 'bad pack', pos
      call MPI_ISEND(me, 1, MPI_INTEGER, mod(me + 1, n), 3,
     &               MPI_COMM_WORLD, req, ierr)
      call MPI_RECV(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG,
     &              MPI_COMM_WORLD, stat, ierr)
      call MPI_WAIT(req, stat, ierr)
      if (got .ne. mod(me + n - 1, n)) print *, 'bad message'
      if (req .ne. MPI_REQUEST_NULL) print *, 'request not null'
      total = 0
      do i = 0, n - 1
        value = i * 10
        call MPI_BCAST(value, 1, MPI_INTEGER, i, MPI_COMM_WORLD, ierr)
        total = total + value
      end do
      call MPI_REDUCE(total, got, 1, MPI_INTEGER, MPI_SUM, 0,
     &                MPI_COMM_WORLD, ierr)
      if (me .eq. 0) print *, 'total', got, 5 * n * n * (n - 1)
      call MPI_FINALIZE(ierr)
      end
