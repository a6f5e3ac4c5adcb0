/** The operations that are no MCP tools. Everything else is one, so that agents can see and undo what they did. */
import { describe, expect, it } from 'vitest'
import { tools } from '../../tools/index.ts'

const admins = 'Administrators act in person.'
const people = 'Who shares an account is for people alone.'
const owners = 'Only the owner grants, changes or revokes permissions.'
const signIn = 'Signing in is for persons; an agent has a key.'
const newcomers = 'An agent without a key cannot connect; the command line asks for it.'
const security = 'The security of the account is its owner’s.'
const builders = 'Where events go is the owner’s decision; a program of the owner receives them.'
const notices = 'No key decides what its owner is told.'
const sandbox = 'Plays an outside party or prepares a test; not a part of the product.'

const leftOut: Readonly<Record<string, string>> = {
  'admin.accounts.lock': admins,
  'admin.accounts.unlock': admins,
  'admin.alarms.list': admins,
  'admin.alarms.resolve': admins,
  'admin.debts.list': admins,
  'admin.drift.list': admins,
  'admin.figures': admins,
  'admin.kyc.decide': admins,
  'admin.kyc.list': admins,
  'admin.reviews.decide': admins,
  'admin.reviews.list': admins,
  'admin.travel_rules.decide': admins,
  'admin.travel_rules.list': admins,
  'agents.pause': owners,
  'admin.accounts.list': admins,
  'agents.keys.challenge': owners,
  'agents.keys.create': owners,
  'agents.keys.get': owners,
  'agents.keys.list': owners,
  'agents.keys.pause': owners,
  'agents.keys.remove': owners,
  'agents.keys.tree': 'A picture for people; a key lists what is below it with `agents_delegations_list`.',
  'agents.keys.update': owners,
  'agents.keys.usage': 'The owner’s view of a key; the key reads its own with `context`.',
  'agents.policy.get': owners,
  'agents.policy.set': owners,
  'agents.registrations.get': owners,
  'agents.registrations.outcome': newcomers,
  'agents.registrations.reject': owners,
  'agents.registrations.start': newcomers,
  'agents.rules': owners,
  'approvals.decide': 'No key approves.',
  'approvals.list': 'The owner’s list; a key reads its own with `approvals_get`.',
  'auth.devices.allow': signIn,
  'auth.devices.get': signIn,
  'auth.devices.outcome': signIn,
  'auth.devices.reject': signIn,
  'auth.devices.start': signIn,
  'auth.guest': signIn,
  'auth.identity_provider': signIn,
  'auth.logout': signIn,
  'auth.otp.start': signIn,
  'auth.otp.verify': signIn,
  'auth.profile': signIn,
  'auth.recovery.complete': signIn,
  'auth.recovery.start': signIn,
  'auth.session': signIn,
  'auth.sessions.list': signIn,
  'auth.sessions.revoke': signIn,
  'auth.webauthn': signIn,
  'cards.reveal': owners,
  'compliance.blocked_addresses.get': security,
  'banking.customer.get': owners,
  'banking.customer.start': owners,
  'banking.payouts.intent': 'Prepares a person’s signature; an agent does not need it.',
  'banking.recipients.create': owners,
  'banking.recipients.get': 'A key reads the list, which says as much of each.',
  'banking.recipients.remove': owners,
  'compliance.blocked_addresses.set': security,
  'compliance.personal_data.erase': 'A person’s data is erased by the person.',
  'compliance.verification_page': owners,
  'contacts.create': owners,
  'contacts.remove': owners,
  'contacts.update': owners,
  'requests.link': owners,
  'developer.keys.create': owners,
  'developer.keys.list': owners,
  'developer.keys.revoke': owners,
  'developer.keys.update': owners,
  'docs.feedback': 'For readers of the documentation, without an account.',
  'investing.account.get': owners,
  'investing.account.open': owners,
  'notifications.channels.create': notices,
  'notifications.channels.list': notices,
  'notifications.channels.remove': notices,
  'notifications.messages.list': notices,
  'notifications.settings.get': notices,
  'notifications.settings.update': notices,
  'notifications.subscriptions.create': notices,
  'notifications.subscriptions.list': notices,
  'notifications.subscriptions.remove': notices,
  'people.get': people,
  'people.invitations.accept': people,
  'people.invitations.cancel': people,
  'people.invitations.create': people,
  'people.list': people,
  'people.remove': people,
  'people.update': people,
  'rails.controls.get': admins,
  'rails.controls.set': admins,
  'sandbox.admin': sandbox,
  'sandbox.authorizations': sandbox,
  'sandbox.bridge': sandbox,
  'sandbox.clock': sandbox,
  'sandbox.credentials': sandbox,
  'sandbox.deposits': sandbox,
  'sandbox.faucet': sandbox,
  'sandbox.outbox': sandbox,
  'sandbox.payouts': sandbox,
  'sandbox.prices': sandbox,
  'sandbox.recourse': sandbox,
  'sandbox.routes': sandbox,
  'sandbox.sellers': sandbox,
  'security.journal.list': security,
  'security.lock': security,
  'security.mfa': security,
  'security.passkeys.list': security,
  'security.passkeys.remove': security,
  'statements.get': owners,
  'swaps.orders.intent': 'Prepares a person’s signature; an agent does not need it.',
  'swaps.orders.list': 'activity_list has the same swaps.',
  'wallets.allowances.intent': owners,
  'wallets.allowances.list': owners,
  'wallets.allowances.set': owners,
  'wallets.signers.create': security,
  'wallets.signers.list': security,
  'purchases.intent': 'Prepares a person’s signature; an agent does not need it.',
  'purchases.response': 'Streams bytes, which no model reads; `purchases_get` has the start of them.',
  'wallets.transfer_intent': 'Prepares a person’s signature; an agent does not need it.',
  'webhook_endpoints.create': builders,
  'webhook_endpoints.deliveries.list': builders,
  'webhook_endpoints.deliveries.retry': builders,
  'webhook_endpoints.get': builders,
  'webhook_endpoints.list': builders,
  'webhook_endpoints.remove': builders,
  'webhook_endpoints.rotate': builders,
  'webhook_endpoints.test': builders,
  'webhook_endpoints.update': builders,
}

describe('the operations that are no MCP tools', () => {
  it('are listed with a reason each', () => {
    const missing = tools.filter(({ mcp }) => !mcp).map(({ name }) => name)
    expect(missing.sort()).toEqual(Object.keys(leftOut).sort())
  })

  it('are none that a key may call, except an intent', () => {
    const callable = tools.filter(({ mcp, who }) => !mcp && who === 'account').map(({ name }) => name)
    expect(callable).toEqual([
      'agents.keys.tree',
      'purchases.response',
      'swaps.orders.list',
      'wallets.transfer_intent',
    ])
  })

  it('include every operation of owners, administrators and sign-in', () => {
    const exposed = tools.filter(
      ({ mcp, who, name }) =>
        mcp && (who === 'person' || who === 'admin' || /^(admin|auth|security|sandbox)\./.test(name)),
    )
    expect(exposed.map(({ name }) => name)).toEqual([])
  })
})
