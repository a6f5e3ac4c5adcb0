/** Entries of the journal in words. */
import type { IconName } from '../components/icon.tsx'

const actions: Readonly<Record<string, { readonly words: string; readonly icon: IconName }>> = {
  'account.locked': { words: 'Locked the account', icon: 'lock' },
  'account.unlocked': { words: 'Unlocked the account', icon: 'lock' },
  'account.recovery_requested': { words: 'Asked an administrator to unlock the account', icon: 'lock' },
  'account.recovered': { words: 'Recovered the account', icon: 'lock' },
  'account.notifications_set': { words: 'Changed the mails', icon: 'bell' },
  'account.renamed': { words: 'Changed the display name', icon: 'person' },
  'account.role_changed': { words: 'Changed a role', icon: 'person' },
  'alarm.resolved': { words: 'Resolved an alarm', icon: 'check' },
  'allowance.authorized': { words: 'Authorized an allowance', icon: 'edit' },
  'approval.approved': { words: 'Approved a call', icon: 'check' },
  'approval.rejected': { words: 'Rejected a call', icon: 'close' },
  'approval.withdrawn': { words: 'An agent withdrew its request', icon: 'return' },
  'blocked_addresses.set': { words: 'Replaced the blocked addresses', icon: 'shield' },
  'card.issued': { words: 'Made a card', icon: 'card' },
  'card.updated': { words: 'Changed a card', icon: 'card' },
  'card.revealed': { words: 'Showed a card’s number', icon: 'eye' },
  'contact.created': { words: 'Added a contact', icon: 'contacts' },
  'contact.updated': { words: 'Changed a contact', icon: 'contacts' },
  'contact.removed': { words: 'Removed a contact', icon: 'contacts' },
  'request.created': { words: 'Asked for money', icon: 'in' },
  'request.linked': { words: 'Linked money to a request', icon: 'in' },
  'request.canceled': { words: 'Canceled a request', icon: 'in' },
  'device.allowed': { words: 'Signed a program in', icon: 'laptop' },
  'factor.added': { words: 'Added a way in or a factor', icon: 'key' },
  'factor.removed': { words: 'Removed a way in or a factor', icon: 'key' },
  'key.created': { words: 'Created an agent or key', icon: 'agent' },
  'key.paused': { words: 'Stopped an agent', icon: 'stop' },
  'key.updated': { words: 'Changed an agent', icon: 'edit' },
  'key.revoked': { words: 'Revoked an agent', icon: 'close' },
  'policy.owner_cap_set': { words: 'Changed the cap of all agents', icon: 'edit' },
  'push_subscription.created': { words: 'Switched messages on in a browser', icon: 'bell' },
  'push_subscription.deleted': { words: 'Switched messages off in a browser', icon: 'bell' },
  'notification_channel.created': { words: 'Added a channel for messages', icon: 'bell' },
  'notification_channel.deleted': { words: 'Removed a channel for messages', icon: 'bell' },
  'rail.switched': { words: 'Switched a rail', icon: 'operator' },
  'signer.added': { words: 'Added a signer', icon: 'key' },
  'webhook_endpoint.created': { words: 'Added a webhook', icon: 'code' },
  'webhook_endpoint.updated': { words: 'Changed a webhook', icon: 'code' },
  'webhook_endpoint.deleted': { words: 'Deleted a webhook', icon: 'code' },
  'webhook_endpoint.rotated': { words: 'Replaced a webhook’s secret', icon: 'code' },
}

export function actionInWords(action: string): { readonly words: string; readonly icon: IconName } {
  return actions[action] ?? { words: action.replaceAll(/[._]/g, ' '), icon: 'edit' }
}
