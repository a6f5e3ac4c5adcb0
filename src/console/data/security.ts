/** Ways in, second factors, signers and what was changed. */
import { bursar } from './gateway.ts'
import { resource } from './resource.ts'

const changes = ['security.']

export const passkeys = resource(() => bursar.security.passkeys.list({ limit: 100 }), changes)
export const sessions = resource(() => bursar.auth.sessions.list({ limit: 50 }), changes)
export const secondFactor = resource(() => bursar.security.mfa({ action: 'status' }), changes)
export const signers = resource(() => bursar.wallets.signers.list(), changes)
export const allowances = resource(
  () => bursar.wallets.allowances.list({ limit: 100 }),
  ['transfer.', 'card.', 'key.'],
)
export const journal = resource(
  () => bursar.security.journal.list({ limit: 20 }),
  ['security.', 'key.', 'card.updated', 'card.issued', 'approval.'],
)
/** Browsers that get push messages of this account, this one included. */
export const pushBrowsers = resource(() => bursar.notifications.subscriptions.list(), changes)
export const mailSettings = resource(() => bursar.notifications.settings.get())
