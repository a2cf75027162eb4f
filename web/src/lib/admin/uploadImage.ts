import { api, call } from '$lib/api/client';

/** Sends a picture and returns the address at which it is served. */
export async function uploadImage(file: File): Promise<string> {
  const form = new FormData();
  form.append('image', file);
  const { image } = await call(
    api.POST('/api/image/upload', {
      body: form as never,
      bodySerializer: (body) => body as unknown as FormData,
    }),
  );
  return image.url;
}
