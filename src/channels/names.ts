/** The names of channels, each in one place. */
export const topics = {
  /** A job became claimable, so an idle worker looks at once. */
  jobsReady: "jobs.ready",
  /** A running job is to be cancelled. Body: { id, jobEpoch, reason }. */
  jobCancel: "job.cancel",
  /** A job's status, progress or logs changed. Body: JobChange. */
  jobChanged: "job.changed",
  /** Somebody follows a job, and wants to hear of its changes. Body: { id }. */
  jobFollowed: "job.followed",
  /** A schedule was put, removed, paused or resumed. */
  schedulesChanged: "schedules.changed",
} as const;
