/** Queues and switches of the deployment. For administrators only. */
import { bursar } from './gateway.ts'
import { resource } from './resource.ts'

export const openReviews = resource(() => bursar.admin.reviews.list({ status: 'open', limit: 50 }))
export const openApplications = resource(() => bursar.admin.kyc.list({ limit: 50 }))
export const openTravelRules = resource(() => bursar.admin.travelRules.list({ limit: 50 }))
export const rails = resource(() => bursar.rails.list())
export const alarms = resource(() => bursar.admin.alarms.list())
export const drifts = resource(() => bursar.admin.drift.list())
export const debts = resource(() => bursar.admin.debts.list())
/** Volume, refusals, the card float and the ages of all queues. */
export const figures = resource(() => bursar.admin.figures())
