/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of MPI-4 that the header of Open MPI 4.1 does not declare yet; programs built with Open
 * MPI 5 call them. */
#ifndef HALE_MPI_MPI4_H
#define HALE_MPI_MPI4_H

#include <mpi.h>

/* As Open MPI 5 numbers them. */
#ifndef MPI_ERR_SESSION
#define MPI_ERR_PROC_ABORTED	74
#define MPI_ERR_SESSION		78
#define MPI_ERR_VALUE_TOO_LARGE 79
#define MPI_BUFFER_AUTOMATIC	((void *)2)
enum {
	MPI_COMM_TYPE_HW_UNGUIDED = 12,
	MPI_COMM_TYPE_HW_GUIDED,
	MPI_COMM_TYPE_RESOURCE_GUIDED
};

typedef struct ompi_instance_t *MPI_Session;
typedef void(MPI_Session_errhandler_function)(MPI_Session *, int *, ...);
extern struct ompi_predefined_instance_t ompi_mpi_instance_null;
#define MPI_SESSION_NULL ((MPI_Session)(void *)&ompi_mpi_instance_null)
#endif

/* And Open MPI 4.1's names for the persistent ones. */
#define INIT_ALIASES(name)                                                                         \
	API_ALIAS(name);                                                                           \
	extern __typeof(PMPI_##name) PMPIX_##name __attribute__((alias("PMPI_" #name)));           \
	extern __typeof(PMPI_##name) MPIX_##name __attribute__((weak, alias("PMPI_" #name)))

int PMPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Bcast_init(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
		    MPI_Request *request);
int MPI_Bcast_init(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
		   MPI_Request *request);
int PMPI_Gather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		     MPI_Datatype rt, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Gather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		    MPI_Datatype rt, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Gatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
		      const int rcounts[], const int displs[], MPI_Datatype rt, int root,
		      MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Gatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, const int rcounts[],
		     const int displs[], MPI_Datatype rt, int root, MPI_Comm comm, MPI_Info info,
		     MPI_Request *request);
int PMPI_Scatter_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		      MPI_Datatype rt, int root, MPI_Comm comm, MPI_Info info,
		      MPI_Request *request);
int MPI_Scatter_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		     MPI_Datatype rt, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Scatterv_init(const void *sbuf, const int scounts[], const int displs[], MPI_Datatype st,
		       void *rbuf, int rcount, MPI_Datatype rt, int root, MPI_Comm comm,
		       MPI_Info info, MPI_Request *request);
int MPI_Scatterv_init(const void *sbuf, const int scounts[], const int displs[], MPI_Datatype st,
		      void *rbuf, int rcount, MPI_Datatype rt, int root, MPI_Comm comm,
		      MPI_Info info, MPI_Request *request);
int PMPI_Allgather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
			MPI_Datatype rt, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Allgather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		       MPI_Datatype rt, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Allgatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
			 const int rcounts[], const int displs[], MPI_Datatype rt, MPI_Comm comm,
			 MPI_Info info, MPI_Request *request);
int MPI_Allgatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
			const int rcounts[], const int displs[], MPI_Datatype rt, MPI_Comm comm,
			MPI_Info info, MPI_Request *request);
int PMPI_Alltoall_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		       MPI_Datatype rt, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Alltoall_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		      MPI_Datatype rt, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Alltoallv_init(const void *sbuf, const int scounts[], const int sdispls[], MPI_Datatype st,
			void *rbuf, const int rcounts[], const int rdispls[], MPI_Datatype rt,
			MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Alltoallv_init(const void *sbuf, const int scounts[], const int sdispls[], MPI_Datatype st,
		       void *rbuf, const int rcounts[], const int rdispls[], MPI_Datatype rt,
		       MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Alltoallw_init(const void *sbuf, const int scounts[], const int sdispls[],
			const MPI_Datatype st[], void *rbuf, const int rcounts[],
			const int rdispls[], const MPI_Datatype rt[], MPI_Comm comm, MPI_Info info,
			MPI_Request *request);
int MPI_Alltoallw_init(const void *sbuf, const int scounts[], const int sdispls[],
		       const MPI_Datatype st[], void *rbuf, const int rcounts[],
		       const int rdispls[], const MPI_Datatype rt[], MPI_Comm comm, MPI_Info info,
		       MPI_Request *request);
int PMPI_Reduce_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		     int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Reduce_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op, int root,
		    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Allreduce_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
			MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Allreduce_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		       MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Scan_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		   MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Scan_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		  MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Exscan_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		     MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Exscan_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Reduce_scatter_block_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type,
				   MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Reduce_scatter_block_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type,
				  MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Reduce_scatter_init(const void *sbuf, void *rbuf, const int counts[], MPI_Datatype type,
			     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Reduce_scatter_init(const void *sbuf, void *rbuf, const int counts[], MPI_Datatype type,
			    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_allgather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
				 int rcount, MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
				 MPI_Request *request);
int MPI_Neighbor_allgather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
				int rcount, MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
				MPI_Request *request);
int PMPI_Neighbor_allgatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
				  const int rcounts[], const int displs[], MPI_Datatype rt,
				  MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Neighbor_allgatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
				 const int rcounts[], const int displs[], MPI_Datatype rt,
				 MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_alltoall_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
				int rcount, MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
				MPI_Request *request);
int MPI_Neighbor_alltoall_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
			       int rcount, MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
			       MPI_Request *request);
int PMPI_Neighbor_alltoallv_init(const void *sbuf, const int scounts[], const int sdispls[],
				 MPI_Datatype st, void *rbuf, const int rcounts[],
				 const int rdispls[], MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
				 MPI_Request *request);
int MPI_Neighbor_alltoallv_init(const void *sbuf, const int scounts[], const int sdispls[],
				MPI_Datatype st, void *rbuf, const int rcounts[],
				const int rdispls[], MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
				MPI_Request *request);
int PMPI_Neighbor_alltoallw_init(const void *sbuf, const int scounts[], const MPI_Aint sdispls[],
				 const MPI_Datatype st[], void *rbuf, const int rcounts[],
				 const MPI_Aint rdispls[], const MPI_Datatype rt[], MPI_Comm comm,
				 MPI_Info info, MPI_Request *request);
int MPI_Neighbor_alltoallw_init(const void *sbuf, const int scounts[], const MPI_Aint sdispls[],
				const MPI_Datatype st[], void *rbuf, const int rcounts[],
				const MPI_Aint rdispls[], const MPI_Datatype rt[], MPI_Comm comm,
				MPI_Info info, MPI_Request *request);

/* mpi/p2p/composite.c, mpi/comm/ */
int PMPI_Isendrecv(const void *sbuf, int scount, MPI_Datatype stype, int dst, int stag, void *rbuf,
		   int rcount, MPI_Datatype rtype, int src, int rtag, MPI_Comm comm,
		   MPI_Request *request);
int MPI_Isendrecv(const void *sbuf, int scount, MPI_Datatype stype, int dst, int stag, void *rbuf,
		   int rcount, MPI_Datatype rtype, int src, int rtag, MPI_Comm comm,
		   MPI_Request *request);
int PMPI_Isendrecv_replace(void *buf, int count, MPI_Datatype type, int dst, int stag, int src,
			   int rtag, MPI_Comm comm, MPI_Request *request);
int MPI_Isendrecv_replace(void *buf, int count, MPI_Datatype type, int dst, int stag, int src,
			   int rtag, MPI_Comm comm, MPI_Request *request);
int PMPI_Psend_init(const void *buf, int partitions, int count, MPI_Datatype type, int dest,
		    int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Psend_init(const void *buf, int partitions, int count, MPI_Datatype type, int dest,
		    int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Precv_init(void *buf, int partitions, int count, MPI_Datatype type, int source, int tag,
		    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Precv_init(void *buf, int partitions, int count, MPI_Datatype type, int source, int tag,
		    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Pready(int partition, MPI_Request request);
int MPI_Pready(int partition, MPI_Request request);
int PMPI_Pready_range(int partition_low, int partition_high, MPI_Request request);
int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request);
int PMPI_Pready_list(int length, const int partitions[], MPI_Request request);
int MPI_Pready_list(int length, const int partitions[], MPI_Request request);
int PMPI_Parrived(MPI_Request request, int partition, int *flag);
int MPI_Parrived(MPI_Request request, int partition, int *flag);
int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request);
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request);
int PMPI_Info_create_env(int argc, char *argv[], MPI_Info *info);
int MPI_Info_create_env(int argc, char *argv[], MPI_Info *info);

/* mpi/comm/errors.c */
int PMPI_Remove_error_class(int errorclass);
int MPI_Remove_error_class(int errorclass);
int PMPI_Remove_error_code(int errorcode);
int MPI_Remove_error_code(int errorcode);
int PMPI_Remove_error_string(int errorcode);
int MPI_Remove_error_string(int errorcode);

/* mpi/session/ */
int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session);
int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session);
int PMPI_Session_finalize(MPI_Session *session);
int MPI_Session_finalize(MPI_Session *session);
int PMPI_Session_get_info(MPI_Session session, MPI_Info *info_used);
int MPI_Session_get_info(MPI_Session session, MPI_Info *info_used);
int PMPI_Session_get_num_psets(MPI_Session session, MPI_Info info, int *npset_names);
int MPI_Session_get_num_psets(MPI_Session session, MPI_Info info, int *npset_names);
int PMPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *pset_len,
			      char *pset_name);
int MPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *pset_len,
			     char *pset_name);
int PMPI_Session_get_pset_info(MPI_Session session, const char *pset_name, MPI_Info *info);
int MPI_Session_get_pset_info(MPI_Session session, const char *pset_name, MPI_Info *info);
int PMPI_Group_from_session_pset(MPI_Session session, const char *pset_name, MPI_Group *newgroup);
int MPI_Group_from_session_pset(MPI_Session session, const char *pset_name, MPI_Group *newgroup);
int PMPI_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info,
				MPI_Errhandler errhandler, MPI_Comm *newcomm);
int MPI_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info,
			       MPI_Errhandler errhandler, MPI_Comm *newcomm);
int PMPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader,
				      MPI_Group remote_group, int remote_leader,
				      const char *stringtag, MPI_Info info,
				      MPI_Errhandler errhandler, MPI_Comm *newintercomm);
int MPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader,
				     MPI_Group remote_group, int remote_leader,
				     const char *stringtag, MPI_Info info,
				     MPI_Errhandler errhandler, MPI_Comm *newintercomm);
int PMPI_Session_create_errhandler(MPI_Session_errhandler_function *function,
				   MPI_Errhandler *errhandler);
int MPI_Session_create_errhandler(MPI_Session_errhandler_function *function,
				  MPI_Errhandler *errhandler);
int PMPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler);
int MPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler);
int PMPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler);
int MPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler);
int PMPI_Session_call_errhandler(MPI_Session session, int errorcode);
int MPI_Session_call_errhandler(MPI_Session session, int errorcode);

/* mpi/p2p/buffer.c */
int PMPI_Buffer_flush(void);
int MPI_Buffer_flush(void);
int PMPI_Buffer_iflush(MPI_Request *request);
int MPI_Buffer_iflush(MPI_Request *request);
int PMPI_Comm_attach_buffer(MPI_Comm comm, void *buffer, int size);
int MPI_Comm_attach_buffer(MPI_Comm comm, void *buffer, int size);
int PMPI_Comm_detach_buffer(MPI_Comm comm, void *buffer_addr, int *size);
int MPI_Comm_detach_buffer(MPI_Comm comm, void *buffer_addr, int *size);
int PMPI_Comm_flush_buffer(MPI_Comm comm);
int MPI_Comm_flush_buffer(MPI_Comm comm);
int PMPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request);
int MPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request);
int PMPI_Session_attach_buffer(MPI_Session session, void *buffer, int size);
int MPI_Session_attach_buffer(MPI_Session session, void *buffer, int size);
int PMPI_Session_detach_buffer(MPI_Session session, void *buffer_addr, int *size);
int MPI_Session_detach_buffer(MPI_Session session, void *buffer_addr, int *size);
int PMPI_Session_flush_buffer(MPI_Session session);
int MPI_Session_flush_buffer(MPI_Session session);
int PMPI_Session_iflush_buffer(MPI_Session session, MPI_Request *request);
int MPI_Session_iflush_buffer(MPI_Session session, MPI_Request *request);

int PMPI_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag);
int MPI_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag);

/* mpi/abi/mpit.c */
int PMPI_T_source_get_num(int *number);
int MPI_T_source_get_num(int *number);
int PMPI_T_event_get_num(int *number);
int MPI_T_event_get_num(int *number);
int PMPI_T_category_get_num_events(int index, int *number);
int MPI_T_category_get_num_events(int index, int *number);
int PMPI_T_category_get_events(int index, int len, int indices[]);
int MPI_T_category_get_events(int index, int len, int indices[]);
int PMPI_T_source_get_info(int index, char *name, int *name_len, char *desc, int *desc_len,
			   int *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks,
			   MPI_Info *info);
int MPI_T_source_get_info(int index, char *name, int *name_len, char *desc, int *desc_len,
			  int *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks,
			  MPI_Info *info);
int PMPI_T_source_get_timestamp(int index, MPI_Count *timestamp);
int MPI_T_source_get_timestamp(int index, MPI_Count *timestamp);
int PMPI_T_event_get_index(const char *name, int *index);
int MPI_T_event_get_index(const char *name, int *index);
int PMPI_T_event_get_info(int index, char *name, int *name_len, int *verbosity,
			  MPI_Datatype types[], MPI_Aint displacements[], int *elements,
			  MPI_T_enum *enumtype, MPI_Info *info, char *desc, int *desc_len,
			  int *bind);
int MPI_T_event_get_info(int index, char *name, int *name_len, int *verbosity, MPI_Datatype types[],
			 MPI_Aint displacements[], int *elements, MPI_T_enum *enumtype,
			 MPI_Info *info, char *desc, int *desc_len, int *bind);
int PMPI_T_event_handle_alloc(int index, void *object, MPI_Info info, void **event);
int MPI_T_event_handle_alloc(int index, void *object, MPI_Info info, void **event);
int PMPI_T_event_handle_free(void *event, void *data, void *function);
int MPI_T_event_handle_free(void *event, void *data, void *function);
int PMPI_T_event_handle_get_info(void *event, MPI_Info *info);
int MPI_T_event_handle_get_info(void *event, MPI_Info *info);
int PMPI_T_event_handle_set_info(void *event, MPI_Info info);
int MPI_T_event_handle_set_info(void *event, MPI_Info info);
int PMPI_T_event_register_callback(void *event, int safety, MPI_Info info, void *data,
				   void *function);
int MPI_T_event_register_callback(void *event, int safety, MPI_Info info, void *data,
				  void *function);
int PMPI_T_event_callback_get_info(void *event, int safety, MPI_Info *info);
int MPI_T_event_callback_get_info(void *event, int safety, MPI_Info *info);
int PMPI_T_event_callback_set_info(void *event, int safety, MPI_Info info);
int MPI_T_event_callback_set_info(void *event, int safety, MPI_Info info);
int PMPI_T_event_set_dropped_handler(void *event, void *function);
int MPI_T_event_set_dropped_handler(void *event, void *function);
int PMPI_T_event_copy(void *instance, void *buffer);
int MPI_T_event_copy(void *instance, void *buffer);
int PMPI_T_event_read(void *instance, int element, void *buffer);
int MPI_T_event_read(void *instance, int element, void *buffer);
int PMPI_T_event_get_source(void *instance, int *index);
int MPI_T_event_get_source(void *instance, int *index);
int PMPI_T_event_get_timestamp(void *instance, MPI_Count *timestamp);
int MPI_T_event_get_timestamp(void *instance, MPI_Count *timestamp);

#endif
