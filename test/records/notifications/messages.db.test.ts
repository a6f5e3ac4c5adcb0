/** Messages that wait for a channel, and in which order they are sent. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../src/core/base/ids.ts'
import { run } from '../../../src/kernel/run.ts'
import { listDueMessages } from '../../../src/records/notifications/messages.ts'
import { createSendMessages } from '../../../src/server/jobs/send-messages.ts'
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

  it('go on past one that cannot be written and one that its chat refuses, which are given up after their tries', async () => {
    let at = noon
    const sent: string[] = []
    const services = await servicesOn(database(), {
      clock: () => at,
      chats: {
        send: async (_target, { title, items }) => {
          const told = [title, ...items.flatMap(({ lines }) => lines)].join(' ')
          if (told.includes('unlocked'))
            return { status: 'failed', problem: 'http_400', retryAfterSeconds: null }
          sent.push(title)
          return { status: 'sent' }
        },
      },
    })
    const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    const owner = await signInAgain(services, account.id)
    const { body: channel } = await owner.call(create, { type: 'telegram', botToken: '1:secret', chatId: 1 })
    const insert = (type: string, index: number, data: object = {}) =>
      database()
        .kysely.insertInto('owner_message')
        .values({
          id: newId('msg', new Date(at.getTime() + index)),
          account_id: account.id,
          channel_id: String(channel.id),
          channel_type: 'telegram',
          about: `poison ${at.getTime()} ${index}`,
          type,
          object_id: 'none',
          data: JSON.stringify(data),
          at: new Date(at.getTime() + index),
          held_until: at,
          expires_at: new Date(at.getTime() + 86_400_000),
        })
        .execute()
    // The first has no data that it could be written from.
    await insert('budget.used', 0)
    await insert('security.unlocked', 1)
    await insert('request.paid', 2, { asset: 'USDC', units: '12500000', receivedUnits: '12500000' })
    const round = createSendMessages(services, async () => true)
    const readTries = () =>
      database()
        .kysely.selectFrom('owner_message')
        .select(['tries', 'held_until', 'sent_at'])
        .where('channel_id', '=', String(channel.id))
        .orderBy('id')
        .execute()
    await round()
    await expect.poll(() => sent.length).toBe(1)
    await expect.poll(readTries).toMatchObject([{ tries: 1 }, { tries: 1 }, { tries: 1, held_until: null }])
    for (let hour = 1; hour <= 10; hour += 1) {
      at = new Date(noon.getTime() + hour * 3_600_000)
      const tries = Math.min(hour + 1, 10)
      // A round passes over a channel that the one before has not released yet.
      const repeat = async () => {
        await round()
        return readTries()
      }
      await expect.poll(repeat).toMatchObject([{ tries }, { tries }, { tries: 1 }])
    }
    expect(await readTries()).toMatchObject([
      { held_until: null, sent_at: null },
      { held_until: null, sent_at: null },
      { sent_at: noon },
    ])
  })
})
