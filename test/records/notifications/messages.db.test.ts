/** Messages that wait for a channel, and in which order they are sent. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../src/core/base/ids.ts'
import { run } from '../../../src/kernel/run.ts'
import { listDueMessages } from '../../../src/records/notifications/messages.ts'
import guest from '../../../tools/auth/guest.ts'
import create from '../../../tools/notifications/channels/create.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, noon, servicesOn } from '../../kernel/scene.ts'
import { signInAgain } from '../../people/identity/signed-in.ts'

onBothEngines('messages of a channel', (database) => {
  it('do not wait behind denials, of which an agent makes as many as it likes', async () => {
    const services = await servicesOn(database(), { clock: () => noon })
    const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    const owner = await signInAgain(services, account.id)
    const { body: channel } = await owner.call(create, {
      type: 'telegram',
      botToken: '1:secret',
      chatId: 1,
    })
    const channelId = String(channel.id)
    const message = (type: string, index: number) => {
      const at = new Date(noon.getTime() + index)
      return {
        id: newId('msg', at),
        account_id: account.id,
        channel_id: channelId,
        channel_type: 'telegram',
        about: String(index),
        type,
        object_id: 'dec_1',
        data: '{}',
        at,
        held_until: noon,
        expires_at: new Date(noon.getTime() + 86_400_000),
      }
    }
    await database()
      .kysely.insertInto('owner_message')
      .values([
        ...Array.from({ length: 100 }, (_, index) => message('decision.denied', index)),
        message('approval.requested', 100),
        message('security.locked', 101),
      ])
      .execute()
    const due = await listDueMessages(database(), { channelId, at: noon })
    expect(due.slice(0, 3).map(({ type }) => type)).toEqual([
      'approval.requested',
      'security.locked',
      'decision.denied',
    ])
  })
})
