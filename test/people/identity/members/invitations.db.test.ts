/** Invitations at the moment in which they are accepted: who sent it, and what the invited person would leave behind. */
import { expect, it } from 'vitest'
import { newId } from '../../../../src/core/base/ids.ts'
import type { MemberRole } from '../../../../src/core/base/principal.ts'
import { parseDestination, sealAddress } from '../../../../src/people/identity/codes/destinations.ts'
import { lockAccount } from '../../../../src/people/identity/locks.ts'
import { openInvitation, takeInvitation } from '../../../../src/people/identity/members/invitations.ts'
import { putMembership } from '../../../../src/people/identity/members/memberships.ts'
import { onBothEngines } from '../../../engines.ts'
import { dataKey, newOwner, noon } from '../../../rails/cards/scene.ts'

const settings = { dataKey }
let mailboxes = 0

onBothEngines('an invitation', (database) => {
  /** An account with two owners, and a person with an address of their own, whom the second owner invites. */
  const invite = async () => {
    const [accountId, inviter, invited] = [
      await newOwner(database(), {}),
      await newOwner(database(), {}),
      await newOwner(database(), {}),
    ]
    const setRole = (personId: string, role: MemberRole) =>
      putMembership(database(), { personId, accountId, role, at: noon })
    await setRole(accountId, 'owner')
    await setRole(inviter, 'owner')
    mailboxes += 1
    const destination = await parseDestination(settings, {
      channel: 'email',
      destination: `invited-${mailboxes}@bursar.example`,
    })
    await database()
      .kysely.insertInto('login_destination')
      .values({
        channel: 'email',
        destination_hash: destination.hash,
        account_id: invited,
        sealed_address: Buffer.from(sealAddress(settings, destination), 'base64url'),
        created_at: noon,
      })
      .execute()
    const { code } = await database().transaction((connection) =>
      openInvitation(
        { database: connection, newId, settings },
        { accountId, destination, role: 'viewer', invitedBy: inviter, at: noon },
      ),
    )
    const take = () =>
      database().transaction((connection) =>
        takeInvitation(
          { database: connection, settings },
          { code, personId: invited, accountId: invited, now: noon },
        ),
      )
    return { accountId, inviter, invited, setRole, take }
  }

  it('is worth nothing once its sender is an owner no more, whoever forgot to cancel it', async () => {
    const { inviter, setRole, take, accountId } = await invite()
    await setRole(inviter, 'approver')
    await expect(take()).rejects.toMatchObject({ code: 'not_found' })
    await database().kysely.deleteFrom('membership').where('person_id', '=', inviter).execute()
    await expect(take()).rejects.toMatchObject({ code: 'not_found' })
    await setRole(inviter, 'owner')
    expect(await take()).toMatchObject({ accountId, role: 'viewer' })
  })

  it('waits while its account, or its sender, is locked', async () => {
    const { accountId, inviter, take } = await invite()
    await lockAccount(database(), { accountId, reason: 'admin', at: noon })
    await expect(take()).rejects.toMatchObject({ code: 'conflict' })
    await database()
      .kysely.updateTable('account')
      .set({ status: 'active', locked_at: null, lock_reason: null })
      .where('id', '=', accountId)
      .execute()
    const lock = (at: Date | null) =>
      database()
        .kysely.updateTable('membership')
        .set({ locked_at: at })
        .where('person_id', '=', inviter)
        .execute()
    await lock(noon)
    await expect(take()).rejects.toMatchObject({ code: 'conflict' })
    await lock(null)
    expect(await take()).toMatchObject({ accountId })
  })

  it('waits until a mint that is owed to the person has been made', async () => {
    const { invited, take } = await invite()
    const owed = {
      id: newId('evt', noon),
      account_id: invited,
      token: 'USDC',
      address: `0x${'1'.repeat(40)}`,
    }
    await database()
      .kysely.insertInto('owed_mint')
      .values({ ...owed, units: 1n, tried_at: noon, chain: 'base-sepolia' })
      .execute()
    await expect(take()).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('money on its way'),
    })
    await database().kysely.deleteFrom('owed_mint').where('account_id', '=', invited).execute()
    expect(await take()).toMatchObject({ role: 'viewer' })
  })
})
